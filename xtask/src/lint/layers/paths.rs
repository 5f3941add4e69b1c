//! The paths, words and method calls of a Rust source, tests and documentation left out.

use std::iter::Peekable;

use anyhow::anyhow;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree, token_stream::IntoIter};

/// What a source mentions.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Every path, `use` groups written out: `use a::{b, c::d}` is a::b and a::c::d.
    pub(super) paths: Vec<UsedPath>,
    /// Every identifier and every literal.
    pub(super) words: Vec<Word>,
    /// Every identifier after a dot.
    pub(super) methods: Vec<Word>,
    /// The modules of other files that only tests compile.
    pub(super) test_modules: Vec<String>,
}

/// A path as it is written.
#[derive(Debug)]
pub(super) struct UsedPath {
    /// Its parts, `crate`, `self` and `super` among them.
    pub(super) segments: Vec<String>,
    /// How many inline modules of the file are around it.
    pub(super) depth: usize,
    /// The line where it ends, from 1.
    pub(super) line: usize,
}

/// A word and its line, from 1.
#[derive(Debug)]
pub(super) struct Word {
    /// The word.
    pub(super) text: String,
    /// Its line.
    pub(super) line: usize,
}

/// Reads a source.
///
/// # Errors
/// When it does not even split into tokens.
pub(super) fn scan(source: &str) -> anyhow::Result<Scan> {
    let tokens: TokenStream = source.parse().map_err(|error| anyhow!("{error}"))?;
    let mut scan = Scan::default();
    scan.walk(tokens, &[], 0);
    Ok(scan)
}

type Tokens = Peekable<IntoIter>;

impl Scan {
    /// `prefix` is what stands before the braces of a `use` group.
    fn walk(&mut self, tokens: TokenStream, prefix: &[String], depth: usize) {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(ident) => {
                    let name = ident.to_string();
                    self.word(&name, ident.span().start().line);
                    if name == "as" && !prefix.is_empty() {
                        tokens.next();
                    } else if name == "mod" {
                        self.module(&mut tokens, depth);
                    } else {
                        self.path(name, ident.span().start().line, &mut tokens, prefix, depth);
                    }
                }
                TokenTree::Group(group) => self.walk(group.stream(), prefix, depth),
                TokenTree::Literal(literal) => {
                    self.word(&literal.to_string(), literal.span().start().line);
                }
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    self.attribute(&mut tokens, depth);
                }
                TokenTree::Punct(punct) if punct.as_char() == '.' => {
                    if let Some(TokenTree::Ident(method)) = tokens.peek() {
                        let line = method.span().start().line;
                        self.methods.push(Word {
                            text: method.to_string(),
                            line,
                        });
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
    }

    fn word(&mut self, text: &str, line: usize) {
        self.words.push(Word {
            text: text.to_owned(),
            line,
        });
    }

    /// `mod name { … }`; `mod name;` is another file.
    fn module(&mut self, tokens: &mut Tokens, depth: usize) {
        tokens.next();
        if let Some(group) = next_group(tokens, Delimiter::Brace) {
            self.walk(group.stream(), &[], depth + 1);
        }
    }

    fn path(
        &mut self,
        head: String,
        mut line: usize,
        tokens: &mut Tokens,
        prefix: &[String],
        depth: usize,
    ) {
        let mut segments = prefix.to_vec();
        segments.push(head);
        while is_punct(tokens.peek(), ':') {
            let mut ahead = tokens.clone();
            ahead.next();
            if !is_punct(ahead.peek(), ':') {
                break;
            }
            ahead.next();
            match ahead.next() {
                Some(TokenTree::Ident(ident)) => {
                    line = ident.span().start().line;
                    self.word(&ident.to_string(), line);
                    segments.push(ident.to_string());
                    *tokens = ahead;
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    *tokens = ahead;
                    self.walk(group.stream(), &segments, depth);
                    return;
                }
                _ => break,
            }
        }
        self.paths.push(UsedPath {
            segments,
            depth,
            line,
        });
    }

    /// What follows `#`: documentation is passed over, and so is an item that only tests compile.
    fn attribute(&mut self, tokens: &mut Tokens, depth: usize) {
        if is_punct(tokens.peek(), '!') {
            tokens.next();
        }
        let Some(group) = next_group(tokens, Delimiter::Bracket) else {
            return;
        };
        let text: String = group.stream().to_string().split_whitespace().collect();
        if text == "cfg(test)" {
            self.skip_item(tokens);
        } else if !text.starts_with("doc=") {
            self.walk(group.stream(), &[], depth);
        }
    }

    /// An item ends with its braces or with a semicolon.
    fn skip_item(&mut self, tokens: &mut Tokens) {
        let mut words = Vec::new();
        for token in tokens.by_ref() {
            match token {
                TokenTree::Ident(ident) => words.push(ident.to_string()),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return,
                TokenTree::Punct(punct) if punct.as_char() == ';' => break,
                TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        if let [.., keyword, name] = words.as_slice()
            && keyword == "mod"
        {
            self.test_modules.push(name.clone());
        }
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn next_group(tokens: &mut Tokens, delimiter: Delimiter) -> Option<Group> {
    match tokens.peek() {
        Some(TokenTree::Group(group)) if group.delimiter() == delimiter => {
            let group = group.clone();
            tokens.next();
            Some(group)
        }
        _ => None,
    }
}
