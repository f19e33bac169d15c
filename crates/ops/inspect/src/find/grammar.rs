//! The structure of an expression: operators, their precedence, and the valid sequences of words.
//!
//! From loosest to tightest: `,`, `-o`, `-a` (also between two terms without an operator), `!`, parentheses.

use std::ffi::{CStr, CString};

use super::expression::{Expr, Test};
use super::refusal::Refusal;

/// Maximum nesting of parentheses and negations; the tree is walked by recursion on small stacks.
const MAX_NESTING: usize = 128;

/// A word of the expression.
#[derive(Debug)]
pub(super) struct Token {
    /// Its role.
    pub kind: TokenKind,
    /// The user's spelling.
    pub name: CString,
}

/// The role of a word in the expression.
#[derive(Debug)]
pub(super) enum TokenKind {
    /// `(`
    Open,
    /// `)`
    Close,
    /// `!`, `-not`
    Not,
    /// `-a`, `-and`
    And,
    /// `-o`, `-or`
    Or,
    /// `,`
    Comma,
    /// A test, an action or an option.
    Primary(Expr),
}

impl TokenKind {
    /// The operator for a word.
    pub fn of_operator(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"(" => TokenKind::Open,
            b")" => TokenKind::Close,
            b"!" | b"-not" => TokenKind::Not,
            b"-a" | b"-and" => TokenKind::And,
            b"-o" | b"-or" => TokenKind::Or,
            b"," => TokenKind::Comma,
            _ => return None,
        })
    }
}

/// Builds the tree of an expression; an empty one is true. `last` is the last word, which may not be a token.
pub(super) fn build_tree(tokens: Vec<Token>, last: Option<&CStr>) -> Result<Expr, Refusal> {
    let acts = tokens.iter().any(|token| match &token.kind {
        TokenKind::Primary(expr) => expr.acts(),
        _ => false,
    });
    let mut builder = Builder { tokens: tokens.into_iter().peekable(), last, nesting: 0, acts };
    if builder.tokens.peek().is_none() {
        return Ok(Expr::Test(Test::True));
    }
    let tree = builder.list(None)?;
    match builder.tokens.next() {
        None => Ok(tree),
        Some(_) => Err(Refusal::mistake(&[b"you have too many ')'"])),
    }
}

struct Builder<'a> {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    last: Option<&'a CStr>,
    nesting: usize,
    /// Whether there is an action, so that nothing is printed by default.
    acts: bool,
}

impl Builder<'_> {
    /// Takes the next token if it is one of these.
    fn take_if(&mut self, wanted: fn(&TokenKind) -> bool) -> Option<CString> {
        self.tokens.next_if(|token| wanted(&token.kind)).map(|token| token.name)
    }

    fn list(&mut self, before: Option<&Token>) -> Result<Expr, Refusal> {
        let mut all = vec![self.disjunction(before)?];
        while let Some(name) = self.take_if(|kind| matches!(kind, TokenKind::Comma)) {
            all.push(self.disjunction(Some(&Token { kind: TokenKind::Comma, name }))?);
        }
        Ok(single_or(all, Expr::Comma))
    }

    fn disjunction(&mut self, before: Option<&Token>) -> Result<Expr, Refusal> {
        let mut all = vec![self.conjunction(before)?];
        while let Some(name) = self.take_if(|kind| matches!(kind, TokenKind::Or)) {
            all.push(self.conjunction(Some(&Token { kind: TokenKind::Or, name }))?);
        }
        Ok(single_or(all, Expr::Or))
    }

    fn conjunction(&mut self, before: Option<&Token>) -> Result<Expr, Refusal> {
        let mut all = vec![self.term(before)?];
        loop {
            if let Some(name) = self.take_if(|kind| matches!(kind, TokenKind::And)) {
                all.push(self.term(Some(&Token { kind: TokenKind::And, name }))?);
                continue;
            }
            match self.tokens.peek().map(|token| &token.kind) {
                Some(TokenKind::Primary(_) | TokenKind::Not | TokenKind::Open) => all.push(self.term(None)?),
                _ => return Ok(single_or(all, Expr::And)),
            }
        }
    }

    /// A term after `before`, the operator or parenthesis that requires one.
    fn term(&mut self, before: Option<&Token>) -> Result<Expr, Refusal> {
        let Some(token) = self.tokens.next() else {
            return Err(self.missing_at_end(before));
        };
        match token.kind {
            TokenKind::Primary(expr) => Ok(expr),
            TokenKind::Not => {
                self.nest()?;
                let inner = self.term(Some(&token))?;
                self.nesting -= 1;
                Ok(Expr::Not(Box::new(inner)))
            }
            TokenKind::Open => {
                self.nest()?;
                self.group(&token)
            }
            TokenKind::Close => match before.map(|before| &before.kind) {
                None => Err(Refusal::mistake(&[
                    b"invalid expression: expected expression before closing parentheses ')'.",
                ])),
                Some(TokenKind::Open) => {
                    Err(Refusal::mistake(&[b"invalid expression; empty parentheses are not allowed."]))
                }
                Some(kind) => Err(missing_term(before.map(|before| (kind, &*before.name)), b")")),
            },
            TokenKind::And | TokenKind::Or | TokenKind::Comma => Err(Refusal::mistake(&[
                b"invalid expression; you have used a binary operator '",
                token.name.to_bytes(),
                b"' with nothing before it.",
            ])),
        }
    }

    /// The expression ends where a term is required.
    fn missing_at_end(&self, before: Option<&Token>) -> Refusal {
        match before {
            // GNU find gives more detail here if it adds an implicit -print.
            Some(Token { kind, .. }) if self.acts && !matches!(kind, TokenKind::Open) => {
                missing_term(None, b"")
            }
            None => missing_term(None, b""),
            Some(before) => missing_term(Some((&before.kind, self.last.unwrap_or(&before.name))), b""),
        }
    }

    fn group(&mut self, open: &Token) -> Result<Expr, Refusal> {
        let inner = self.list(Some(open))?;
        self.nesting -= 1;
        match self.take_if(|kind| matches!(kind, TokenKind::Close)) {
            Some(_) => Ok(inner),
            None => Err(Refusal::mistake(&[
                b"invalid expression; I was expecting to find a ')' somewhere but did not see one.",
            ])),
        }
    }

    fn nest(&mut self) -> Result<(), Refusal> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(Refusal::mistake(&[b"invalid expression; it is nested too deeply"]));
        }
        Ok(())
    }
}

/// The list itself if it has one member.
fn single_or(mut all: Vec<Expr>, many: fn(Vec<Expr>) -> Expr) -> Expr {
    match all.pop() {
        Some(only) if all.is_empty() => only,
        Some(last) => {
            all.push(last);
            many(all)
        }
        None => many(all),
    }
}

fn missing_term(before: Option<(&TokenKind, &CStr)>, end: &[u8]) -> Refusal {
    let Some((kind, name)) = before else { return Refusal::mistake(&[b"invalid expression"]) };
    let name = name.to_bytes();
    match (kind, end) {
        (TokenKind::Open, _) => Refusal::mistake(&[
            b"invalid expression; expected to find a ')' but didn't see one. Perhaps you need an extra predicate after '",
            name,
            b"'",
        ]),
        (_, b"") => Refusal::mistake(&[b"expected an expression after '", name, b"'"]),
        (_, end) => Refusal::mistake(&[b"expected an expression between '", name, b"' and '", end, b"'"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses words of one letter as tests that remember their letter.
    fn tree(words: &str) -> Result<String, String> {
        let tokens = words.split_whitespace().map(|word| Token {
            kind: TokenKind::of_operator(word.as_bytes())
                .unwrap_or_else(|| TokenKind::Primary(Expr::Test(Test::FsType(word.as_bytes().to_vec())))),
            name: CString::new(word).expect("no NUL"),
        });
        build_tree(tokens.collect(), None).map(|expr| show(&expr)).map_err(|refusal| refusal.to_string())
    }

    fn show(expr: &Expr) -> String {
        let join = |all: &[Expr], operator: &str| {
            format!("({})", all.iter().map(show).collect::<Vec<_>>().join(operator))
        };
        match expr {
            Expr::And(all) => join(all, "&"),
            Expr::Or(all) => join(all, "|"),
            Expr::Comma(all) => join(all, ","),
            Expr::Not(inner) => format!("!{}", show(inner)),
            Expr::Test(Test::FsType(letter)) => String::from_utf8_lossy(letter).into_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn operators_bind_as_documented() {
        for (words, expected) in [
            ("a", "a"),
            ("a b", "(a&b)"),
            ("a -o b c", "(a|(b&c))"),
            ("a -a b -or c -and d", "((a&b)|(c&d))"),
            ("! a b", "(!a&b)"),
            ("! ( a b )", "!(a&b)"),
            ("-not ! a", "!!a"),
            ("a , b -o c , d", "(a,(b|c),d)"),
            ("( a -o b ) c", "((a|b)&c)"),
            ("( ( a ) )", "a"),
        ] {
            assert_eq!(tree(words).as_deref(), Ok(expected), "{words}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |n: usize| format!("{}a{}", "( ".repeat(n), " )".repeat(n));
        assert_eq!(tree(&nested(MAX_NESTING)).as_deref(), Ok("a"));
        assert!(tree(&nested(MAX_NESTING + 1)).is_err());
        assert!(tree(&format!("{}a", "! ".repeat(100_000))).is_err());
        let long = vec!["a"; 100_000].join(" -o ");
        assert!(tree(&long).is_ok());
    }
}
