//! How receivers know us, and we them: files of a Secret that is mounted. They are read for each message, because they are replaced.

use std::path::{Path, PathBuf};

use rustls::RootCertStore;

use crate::admission::tls::authorities;

/// The folder of the files.
#[derive(Clone, Debug)]
pub(super) struct Credentials(pub(super) Option<PathBuf>);

/// Why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("{path} cannot be read: {source}")]
    Read { path: String, source: std::io::Error },
    #[error("{0} has both a `token` and a `username`: remove one of them")]
    Both(String),
    #[error("{folder} has a `{there}` and no `{missing}`: add it")]
    Half { folder: String, there: &'static str, missing: &'static str },
    #[error("{path} cannot be sent: it has control characters in it")]
    Unsendable { path: String },
    #[error("{0}")]
    Authority(String),
    #[error("https needs the authority of the receiver's certificate: add `ca.crt` to the Secret of the credentials")]
    NoAuthority,
}

/// A larger file is no credential.
const MAX_BYTES: usize = 16 << 10;

impl Credentials {
    /// The header by which a message says who sends it. None if no credentials are given.
    pub(super) fn authorization(&self) -> Result<Option<http::HeaderValue>, Error> {
        let Some(folder) = &self.0 else { return Ok(None) };
        let files = ["token", "username", "password"].map(|name| read(&folder.join(name)));
        let [token, username, password] = files;
        let half = |there, missing| Error::Half { folder: folder.display().to_string(), there, missing };
        let text = match (token?, username?, password?) {
            (None, None, None) => return Ok(None),
            (Some(token), None, None) => format!("Bearer {token}"),
            (None, Some(username), Some(password)) => {
                format!("Basic {}", base64(format!("{username}:{password}").as_bytes()))
            }
            (Some(_), ..) => return Err(Error::Both(folder.display().to_string())),
            (None, Some(_), None) => return Err(half("username", "password")),
            (None, None, Some(_)) => return Err(half("password", "username")),
        };
        let mut value =
            http::HeaderValue::try_from(text).map_err(|_| Error::Unsendable { path: folder.display().to_string() })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// The bytes of the authority's file, to see whether it has changed.
    pub(super) fn authority_bytes(&self) -> Option<Vec<u8>> {
        std::fs::read(self.authority_path()?).ok()
    }

    /// Who vouches for receivers.
    pub(super) fn authority(&self) -> Result<RootCertStore, Error> {
        let path = self.authority_path().filter(|path| path.exists()).ok_or(Error::NoAuthority)?;
        authorities(&path).map_err(Error::Authority)
    }

    fn authority_path(&self) -> Option<PathBuf> {
        self.0.as_ref().map(|folder| folder.join("ca.crt"))
    }
}

/// The text of a file, without the end of its line. Nothing if there is no such file.
fn read(path: &Path) -> Result<Option<String>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) if text.len() > MAX_BYTES => {
            let source = std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it is too large for a credential");
            Err(Error::Read { path: path.display().to_string(), source })
        }
        Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Read { path: path.display().to_string(), source }),
    }
}

/// As HTTP wants a name with its password.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let mut number = 0u32;
        for place in 0..3 {
            number = number << 8 | u32::from(three.get(place).copied().unwrap_or_default());
        }
        for place in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= three.len() { letter as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is sent if the folder has these files.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let said = match Credentials(Some(folder.path().to_owned())).authorization() {
            Ok(header) => header.map_or("nothing".to_owned(), |value| value.to_str().unwrap().to_owned()),
            Err(error) => error.to_string().replace(folder.path().to_str().unwrap(), "FOLDER"),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn credentials_are_what_the_files_say() {
        check(&[], "nothing");
        check(&[("ca.crt", "x")], "nothing");
        check(&[("token", "abc\n")], "Bearer abc");
        check(&[("username", "portal"), ("password", "s3cret:ö")], "Basic cG9ydGFsOnMzY3JldDrDtg==");
        check(&[("username", "a"), ("password", "")], "Basic YTo=");
        check(&[("username", "ab"), ("password", "")], "Basic YWI6");
        check(&[("username", "abc"), ("password", "")], "Basic YWJjOg==");
    }

    #[test]
    fn credentials_that_cannot_be_used_are_told_without_being_shown() {
        check(&[("token", "a"), ("username", "b")], "FOLDER has both a `token` and a `username`: remove one of them");
        check(&[("username", "b")], "FOLDER has a `username` and no `password`: add it");
        check(&[("password", "b")], "FOLDER has a `password` and no `username`: add it");
        check(&[("token", "a\nb")], "FOLDER cannot be sent: it has control characters in it");
    }
}
