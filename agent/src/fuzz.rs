//! The parts that fuzz tests share: numbers, mutations of lines and bytes, and the loop over the
//! inputs. Input N of a test is a function of N alone.

/// Words that mutations put in; the first seven are numbers.
const WORDS: [&str; 28] = [
    "18446744073709551615",
    "-9223372036854775808",
    "9223372036854775807",
    "4294967296",
    "0x",
    "-1",
    "00",
    "\"",
    "\\",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    "=",
    "...",
    " <unfinished ...>",
    "<... read resumed>",
    "AT_FDCWD</",
    "O_CREAT|",
    "../..",
    "\0",
    "\n",
    "99999999999999999999",
];

/// Numbers at the ends of what there is.
const HOSTILE: [i64; 12] = [
    i64::MIN,
    i64::MIN + 1,
    -4096,
    -1,
    0,
    1,
    4095,
    1 << 32,
    1 << 44,
    i64::MAX - 4095,
    i64::MAX - 1,
    i64::MAX,
];

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
pub struct Random(u64);

impl Random {
    /// The generator of an input.
    pub fn from_seed(input: u64) -> Self {
        Self(input.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn one<'a, Item: ?Sized>(&mut self, of: &[&'a Item]) -> &'a Item {
        of[self.below(of.len())]
    }

    /// Mostly a number below `end`; sometimes one that no program gives.
    pub fn number(&mut self, end: usize) -> i64 {
        match self.below(8) {
            0 => HOSTILE[self.below(HOSTILE.len())],
            1 if self.below(4) == 0 => self.next().cast_signed(),
            _ => self.below(end) as i64,
        }
    }

    /// One of the lines, which is mutated up to three times.
    pub fn line(&mut self, lines: &[&str]) -> Vec<u8> {
        let mut line = self.one(lines).as_bytes().to_vec();
        for _ in 0..self.below(4) {
            self.mutate(&mut line, lines);
        }
        line
    }

    fn mutate(&mut self, line: &mut Vec<u8>, lines: &[&str]) {
        let at = self.below(line.len() + 1);
        match self.below(8) {
            0..=3 => self.mutate_bytes(line),
            4 => {
                let other = self.one(lines).as_bytes();
                let from = self.below(other.len());
                line.splice(at.., other[from..].iter().copied());
            }
            5 => {
                // A number becomes another.
                let is_digit = |at: &usize| line[*at].is_ascii_digit();
                let first = (at..line.len()).find(is_digit).unwrap_or(line.len());
                let digits = line[first..].iter().take_while(|it| it.is_ascii_digit()).count();
                let word = WORDS[self.below(7)];
                line.splice(first..first + digits, word.bytes());
            }
            _ => {
                let word = self.one(&WORDS);
                line.splice(at..at, word.bytes());
            }
        }
    }

    /// A byte becomes another, or some are left out, doubled, or lost at the end.
    pub fn mutate_bytes(&mut self, bytes: &mut Vec<u8>) {
        let at = self.below(bytes.len() + 1);
        let end = (at + self.below(12)).min(bytes.len());
        match self.below(4) {
            0 if at < bytes.len() => bytes[at] = self.next() as u8,
            1 => drop(bytes.drain(at..end)),
            2 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes.truncate(at),
        }
    }

    /// Up to so many lines.
    pub fn text(&mut self, lines: &[&str], most: usize) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..=self.below(most) {
            text.extend(self.line(lines));
            text.push(b'\n');
        }
        text
    }
}

/// Runs so many inputs, or FUZZ_INPUTS of them, on all processors; of FUZZ_PART=2/4 the second
/// quarter. Prints how many there were, and the sum of what they gave.
pub fn run(what: &str, inputs: u64, input: impl Fn(u64) -> usize + Sync) {
    let total = std::env::var("FUZZ_INPUTS").map_or(inputs, |text| text.parse().unwrap());
    let part = std::env::var("FUZZ_PART").unwrap_or_default();
    let (part, parts) = part.split_once('/').unwrap_or(("1", "1"));
    let (part, parts): (u64, u64) = (part.parse().unwrap(), parts.parse().unwrap());
    let (first, inputs) = (total * (part - 1) / parts, total / parts);
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get() as u64);
    let input = &input;
    let sum: usize = std::thread::scope(|scope| {
        let spawn = |thread| {
            let share = first + inputs * thread / threads..first + inputs * (thread + 1) / threads;
            scope.spawn(move || share.map(input).sum::<usize>())
        };
        let running: Vec<_> = (0..threads).map(spawn).collect();
        running.into_iter().map(|it| it.join().unwrap()).sum()
    });
    println!("{inputs} inputs, {sum} {what}");
}
