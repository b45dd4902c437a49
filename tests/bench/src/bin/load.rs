//! Load for any webhook, or for an API server: posts a file to a URL, over and over, and prints what came of it as JSON.
//!
//! ```text
//! load --url https://HOST:PORT/PATH --ca FILE --body FILE [--connections 1] [--rate PER_SECOND] [--seconds 3 | --requests N]
//!      [--cert FILE --key FILE] [--pid PROCESS]...
//! ```
//!
//! Without `--rate` each connection asks again once it is answered. With it, requests come at random times, so many a second, and an
//! answer's time counts from when its request should have been sent. `--pid` tells how long a process had processors meanwhile.

use std::error::Error;
use std::path::PathBuf;

use portal_bench::client::{Certificates, Target};
use portal_bench::load::{End, Load, run};

fn main() -> Result<(), Box<dyn Error>> {
    let mut load = Load { connections: 1, rate: None, end: End::Seconds(3.0) };
    let mut certificates = Certificates::default();
    let (mut url, mut body, mut watched) = (String::new(), PathBuf::new(), Vec::new());
    let (mut certificate, mut key) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} needs a value"))?;
        match &*name {
            "--url" => url = value,
            "--ca" => certificates.authority = value.into(),
            "--body" => body = value.into(),
            "--connections" => load.connections = value.parse()?,
            "--rate" => load.rate = Some(value.parse()?),
            "--seconds" => load.end = End::Seconds(value.parse()?),
            "--requests" => load.end = End::Requests(value.parse()?),
            "--cert" => certificate = Some(PathBuf::from(value)),
            "--key" => key = Some(PathBuf::from(value)),
            "--pid" => watched.push(value.parse()?),
            _ => return Err(format!("{name} is none of the flags: see the head of load.rs").into()),
        }
    }
    certificates.own = certificate.zip(key);
    let body = std::fs::read(&body).map_err(|error| format!("--body {}: {error}", body.display()))?;
    let outcome = run(Target::new(&url, &certificates, &body)?, load, &watched)?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(())
}
