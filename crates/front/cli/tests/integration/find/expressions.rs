//! Random command lines.

use crate::random::Random;

/// How deep groups may be nested.
const TOP: usize = 3;

/// Makes command lines that are mostly valid and whose outcome does not depend on the order of the traversal.
pub struct Generator<'r> {
    random: &'r mut Random,
}

impl<'r> Generator<'r> {
    pub fn new(random: &'r mut Random) -> Self {
        Generator { random }
    }

    pub fn command_line(&mut self) -> Vec<String> {
        let mut words = Vec::new();
        if self.random.below(3) == 0 {
            words.push(self.random.pick(&["-L", "-H", "-P"]).to_owned());
        }
        for _ in 0..self.random.below(3) {
            words.push(self.random.pick(&["t", "t/", "./t", "t/.", "nosuch", "t/a", "t/1"]).to_owned());
        }
        if self.random.below(3) == 0 {
            self.option(&mut words);
        }
        self.list(&mut words, TOP);
        if self.random.below(40) == 0 {
            let at = self.random.below(words.len());
            words.remove(at);
        }
        words
    }

    fn option(&mut self, words: &mut Vec<String>) {
        let option = self.random.pick(&[
            "-depth",
            "-maxdepth 2",
            "-mindepth 1",
            "-mindepth 2",
            "-xdev",
            "-daystart",
            "-follow",
            "-maxdepth 0",
            "-ignore_readdir_race",
        ]);
        words.extend(option.split(' ').map(str::to_owned));
    }

    fn list(&mut self, words: &mut Vec<String>, depth: usize) {
        for i in 0..=self.random.below(3) {
            if i > 0 {
                let operator = self.random.pick(&["", "", "-a", "-o", "-o", "-or", "-and"]);
                if !operator.is_empty() {
                    words.push(operator.to_owned());
                }
            }
            self.term(words, depth);
        }
    }

    fn term(&mut self, words: &mut Vec<String>, depth: usize) {
        match self.random.below(10) {
            0 if depth > 0 => {
                words.push("(".to_owned());
                self.list(words, depth - 1);
                words.push(")".to_owned());
            }
            1 => {
                words.push(self.random.pick(&["!", "-not"]).to_owned());
                self.term(words, depth.saturating_sub(1));
            }
            // GNU find moves tests on names before groups, even before those that print.
            2 | 3 if depth == TOP => self.action(words),
            _ => self.test(words),
        }
    }

    fn action(&mut self, words: &mut Vec<String>) {
        let formats = [
            "%p %s %m\\n",
            "%f|%h|%P|%H|%d\\n",
            "%y%Y %l\\n",
            "%M %n %u %g\\n",
            "%i %D %F\\n",
            "%k %b %S\\n",
            "%t %T@ %Ta\\n",
            "%10f|%-10f|%.3f\\n",
            "%TY-%Tm-%Td %TH:%TM:%TS\\n",
            "%a %A+\\n",
            "%5d %05m %#m\\n",
        ];
        match self.random.below(6) {
            0 => words.push("-print".to_owned()),
            1 => words.push("-print0".to_owned()),
            2 => words.push("-prune".to_owned()),
            3 => words.push("-ls".to_owned()),
            _ => words.extend(["-printf".to_owned(), self.random.pick(&formats).to_owned()]),
        }
    }

    fn test(&mut self, words: &mut Vec<String>) {
        let tests = [
            "-name a*",
            "-name *.txt",
            "-name *[ab1]*",
            "-name ?",
            "-iname *A*",
            "-iname ?x",
            "-name *\\**",
            "-path t/*/*",
            "-path *a*",
            "-ipath T/*",
            "-wholename ./t*",
            "-regex .*[0-9].*",
            "-regex t/[^/]*",
            "-iregex .*A",
            "-lname *t*",
            "-ilname ..*",
            "-type f",
            "-type d",
            "-type l",
            "-type f,l",
            "-type p,s,b,c",
            "-xtype f",
            "-xtype l",
            "-xtype d,l",
            "-empty",
            "-size 0",
            "-size 1",
            "-size +1",
            "-size -2",
            "-size 1k",
            "-size +1000c",
            "-size -3k",
            "-size 512c",
            "-links 1",
            "-links +1",
            "-links -3",
            "-perm 644",
            "-perm -400",
            "-perm /111",
            "-perm -u+x",
            "-perm /u=s,g=s",
            "-perm a=",
            "-mtime +100",
            "-mtime -500",
            "-mmin +100000",
            "-newer t",
            "-anewer t",
            "-cnewer t",
            "-newermt 2024-02-02",
            "-newerma t",
            "-newermm t",
            "-samefile t",
            "-samefile t/a",
            "-uid 0",
            "-user root",
            "-gid +0",
            "-group root",
            "-nouser",
            "-nogroup",
            "-readable",
            "-writable",
            "-executable",
            "-true",
            "-false",
            "-fstype tmpfs",
            "-fstype ext4",
            "-atime -1",
            "-ctime 0",
            "-cmin -60",
            "-amin +1",
            "-used +100",
            "-used 4",
            "-used -9000",
        ];
        words.extend(self.random.pick(&tests).split(' ').map(str::to_owned));
    }
}
