//! One request to the server of a fleet: PUT URL/v1/segments/HASH, with the token of the device.
//! What the answer means for the segment follows from its code, if the body has the words of such a
//! server: the 200 of another one, or of a network that wants a login, is no promise to keep it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::queue::Segment;

/// The files in which distributions and Android keep the authorities that they trust.
const SYSTEM: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

const CONNECT: Duration = Duration::from_secs(30);
const WHOLE: Duration = Duration::from_secs(300);

/// So much of an answer is read.
const REASON_BYTES: u64 = 1000;

/// A request that can never be made as it was asked for (exit code 2).
#[derive(Debug)]
pub struct WrongUse(String);

impl std::fmt::Display for WrongUse {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for WrongUse {}

/// Says what became of a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is on stable storage.
    Stored,
    /// It came otherwise than it was sent: once more, but not for ever.
    Garbled(String),
    /// It will never be taken.
    Refused(String),
    /// The token is not, or no more, the server's: later, when somebody has changed it.
    Unknown(String),
    /// Whoever answered is not the server of a fleet: later, when somebody has changed that.
    Elsewhere(String),
    /// Later; the server may say when.
    Later(String, Option<Duration>),
}

/// The server.
pub struct Server {
    agent: Agent,
    url: String,
    token_file: PathBuf,
}

impl Server {
    /// Reads the certificates.
    ///
    /// # Errors
    /// If address, token or certificates cannot be used.
    pub fn new(url: &str, token_file: &Path, ca_file: Option<&Path>) -> anyhow::Result<Self> {
        let wrong = |text: String| anyhow::Error::new(WrongUse(text));
        let uri: Uri = url.parse().map_err(|error| wrong(format!("--server {url}: {error}")))?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_here = host == "localhost"
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(WHOLE))
            .user_agent(concat!("joj-uploader/", env!("CARGO_PKG_VERSION")));
        if is_here {
            config = config.proxy(None);
        }
        match uri.scheme_str() {
            Some("https") => {
                let roots = RootCerts::new_with_certs(&certificates(ca_file)?);
                config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
            }
            Some("http") if is_here => {}
            Some("http") => {
                return Err(wrong(format!("--server {url}: only https leaves this machine")));
            }
            _ => return Err(wrong(format!("--server {url}: https://HOST is needed"))),
        }
        let (url, token_file) = (url.trim_end_matches('/').to_owned(), token_file.to_owned());
        let server = Server { agent: config.build().into(), url, token_file };
        server.token().map_err(|error| wrong(error.to_string()))?;
        Ok(server)
    }

    /// It may be replaced while we run.
    fn token(&self) -> anyhow::Result<String> {
        let path = self.token_file.display();
        let text = fs::read_to_string(&self.token_file)
            .map_err(|error| anyhow::anyhow!("{path}: {error}"))?;
        let token = text.trim();
        let is_token = token.contains('.') && token.bytes().all(|byte| byte.is_ascii_graphic());
        anyhow::ensure!(is_token, "{path}: no token; `joj fleet enrol` prints one");
        Ok(token.to_owned())
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sends a segment.
    pub fn put(&self, segment: &Segment) -> Answer {
        let token = match self.token() {
            Ok(token) => token,
            Err(error) => return Answer::Unknown(error.to_string()),
        };
        let sent = self
            .agent
            .put(format!("{}/v1/segments/{}", self.url, segment.hash))
            .header("Authorization", format!("Bearer {token}"))
            .content_type("application/x-tar")
            .send(&segment.file);
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => return Answer::Later(format!("{}: {error}", self.url), None),
        };
        let wait = response.headers().get("retry-after").and_then(|it| it.to_str().ok());
        let wait = wait.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let status = response.status().as_u16();
        let mut body = Vec::new();
        // What came before an error tells enough.
        let _ = response.body_mut().as_reader().take(REASON_BYTES).read_to_end(&mut body);
        meaning(&self.url, status, &printable(&String::from_utf8_lossy(&body)), wait)
    }
}

/// `body` is what `joj fleet serve` answers, or anything.
fn meaning(url: &str, status: u16, body: &str, wait: Option<Duration>) -> Answer {
    let says = |word: &str| body.contains(&format!("\"status\":\"{word}\""));
    let text = format!("{url}: {status} {body}");
    match status {
        200 | 201 if says("stored") || says("known") => Answer::Stored,
        400 if says("refused") => Answer::Garbled(text),
        401 | 403 if says("refused") => Answer::Unknown(text),
        413 | 422 if says("refused") => Answer::Refused(text),
        408 | 411 | 429 | 500.. => Answer::Later(text, wait),
        _ => Answer::Elsewhere(format!(
            "{url} answered {status}, and not as the server of a fleet does; is --server right?"
        )),
    }
}

/// A server's words are a stranger's.
fn printable(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).collect()
}

fn certificates(ca_file: Option<&Path>) -> anyhow::Result<Vec<Certificate<'static>>> {
    let system = || SYSTEM.iter().map(Path::new).find(|path| path.exists());
    let Some(path) = ca_file.or_else(system) else {
        let text = "no certificates of this system are known; name a --ca-file".to_owned();
        return Err(WrongUse(text).into());
    };
    let wrong = |what: String| WrongUse(format!("{}: {what}", path.display()));
    let text = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(error.to_string()))? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        return Err(wrong("no certificate in PEM".to_owned()).into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(url: &str, token: &str) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, token).unwrap();
        Server::new(url, &path, None).map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn plain_http_stays_on_this_machine() {
        for url in ["http://127.0.0.1:8080", "http://localhost:1/", "http://[::1]:8080"] {
            assert_eq!(server(url, "phone.secret\n"), Ok(()), "{url}");
        }
        for url in ["http://fleet.example", "ftp://localhost", "fleet.example", "http://10.0.0.1"] {
            assert!(server(url, "phone.secret").is_err_and(|it| it.contains(url)), "{url}");
        }
    }

    #[test]
    fn a_file_without_a_token_is_told() {
        let error = server("http://127.0.0.1:1", "a b\n").unwrap_err();
        assert!(error.contains("token: no token"), "{error}");
    }

    #[test]
    fn the_status_and_body_of_an_answer_decide_its_meaning() {
        let is = |status, body: &str| match meaning("", status, body, None) {
            Answer::Stored => 's',
            Answer::Garbled(_) => 'g',
            Answer::Refused(_) => 'r',
            Answer::Unknown(_) => 'u',
            Answer::Elsewhere(_) => 'e',
            Answer::Later(..) => 'l',
        };
        assert_eq!(is(201, r#"{"status":"stored"}"#), 's');
        assert_eq!(is(200, r#"{"status":"known"}"#), 's');
        let codes = [200, 201, 302, 400, 401, 403, 404, 408, 411, 413, 415, 422, 429, 500, 503];
        let all = |body: &str| codes.map(|status| is(status, body)).iter().collect::<String>();
        assert_eq!(all(r#"{"status":"refused","reason":"rate"}"#), "eeeguuellrerlll");
        // Another server, or a network that wants a login, has the segment not.
        assert_eq!(all("<html>welcome</html>"), "eeeeeeelleeelll");
    }
}
