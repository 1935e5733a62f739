//! A call as a trace tells it, whatever the format: what `effects` makes rows of.

use crate::recorder::calls::SystemCall;
use crate::recorder::words;
use crate::tables::recording::RecordedCall;

/// A call that has ended, or that was never seen to end.
#[derive(Debug)]
pub struct TracedCall {
    pub system_call: &'static SystemCall,
    /// Arguments and result; numbers of thread, call and paths, and times, are still to come.
    pub row: RecordedCall,
    /// The bytes of its paths.
    pub path: Option<Vec<u8>>,
    pub path2: Option<Vec<u8>>,
    /// The paths that the descriptors of directories lead to, if the trace tells.
    pub directory_path: Option<Vec<u8>>,
    pub directory2_path: Option<Vec<u8>>,
    pub descriptor_path: Option<Vec<u8>>,
    /// The description of the descriptor, where it is told to be of no file.
    pub no_file: Option<Vec<u8>>,
    pub result_path: Option<Vec<u8>>,
    /// The number of the thread that it made, where that is not the result.
    pub made_tid: Option<i64>,
    /// The text that readlink and getcwd gave.
    pub answer: Option<Vec<u8>>,
    pub stat: Option<FileStat>,
    /// The program and its arguments, of execve.
    pub command: Vec<Vec<u8>>,
    /// Arguments that the trace left out, or whose words have no number here.
    pub unread: u64,
}

/// The answer of a stat call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileStat {
    /// st_mode, with the kind of the file.
    pub mode: Option<i64>,
    pub size_bytes: Option<i64>,
    pub links: Option<i64>,
}

impl TracedCall {
    pub fn new(call: &'static SystemCall) -> Self {
        let row = RecordedCall { name: call.name.into(), ..RecordedCall::default() };
        TracedCall {
            system_call: call,
            row,
            path: None,
            path2: None,
            directory_path: None,
            directory2_path: None,
            descriptor_path: None,
            no_file: None,
            result_path: None,
            made_tid: None,
            answer: None,
            stat: None,
            command: Vec::new(),
            unread: 0,
        }
    }

    /// Notes the path that a call names, if it names one.
    pub fn set_path(&mut self, path: Option<&[u8]>) {
        self.row.path = path.map(words::text);
        self.path = path.map(<[u8]>::to_vec);
    }

    /// The result, if it succeeded.
    pub fn success(&self) -> Option<i64> {
        self.row.result.filter(|_| self.row.error.is_none())
    }

    /// The number of the thread that it made, as the trace's lines have it.
    pub fn child(&self) -> Option<i64> {
        let tid = self.success().filter(|child| *child > 0 && self.system_call.makes_thread())?;
        Some(self.made_tid.unwrap_or(tid))
    }

    /// The error's name, if it failed.
    pub fn error(&self) -> Option<&str> {
        self.row.error.as_deref()
    }
}
