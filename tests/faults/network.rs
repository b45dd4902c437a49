//! The network of pods: the API server asks for a way to an address, and is led to loopback.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// The network. It ends when it is dropped.
pub(super) struct Network {
    ends: Arc<AtomicBool>,
    socket: PathBuf,
}

/// Where a pod is. Kubernetes takes no address of loopback for an endpoint, so it knows another one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Place(u32);

/// The ports that a pod may listen on.
const PORTS: [u16; 3] = [8080, 8443, 9443];

impl Place {
    /// One that nobody on this machine has.
    pub(super) fn free() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Other test programs may run beside this one.
        let first = std::process::id() << 9;
        for _ in 0..10_000 {
            let number = (first + NEXT.fetch_add(1, Ordering::Relaxed)) & 0x7f_ffff;
            let place = Place(0x80_0000 | number);
            let is_host = (1..255).contains(&(number & 0xff));
            if is_host && PORTS.iter().all(|port| TcpListener::bind((place.own(), *port)).is_ok()) {
                return place;
            }
        }
        panic!("loopback has no free address");
    }

    /// The address that it listens on.
    pub(super) fn own(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(127 << 24 | self.0)
    }

    /// The address that the API server knows. Nobody ever sends anything there.
    pub(super) fn known(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(10 << 24 | self.0)
    }

    /// Whose address the API server asks for.
    fn of_known(address: Ipv4Addr) -> Option<Place> {
        (address.octets()[0] == 10).then(|| Place(address.to_bits() & 0xff_ffff))
    }
}

impl Network {
    pub(super) fn start(socket: &Path) -> Network {
        let listener = UnixListener::bind(socket).unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                // One who leaves in the middle is no failure of the network.
                thread::spawn(move || drop(lead(stream)));
            }
        });
        Network { ends, socket: socket.to_owned() }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        // So that it notices.
        let _ = UnixStream::connect(&self.socket);
    }
}

/// Leads a connection to where it wants to go.
fn lead(mut stream: UnixStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < 1024 {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let address = head.strip_prefix("CONNECT ").and_then(|rest| rest.split(' ').next()?.parse::<SocketAddrV4>().ok());
    let place = address.and_then(|address| Some((Place::of_known(*address.ip())?, address.port())));
    let Some(pod) = place.and_then(|(place, port)| TcpStream::connect(SocketAddr::from((place.own(), port))).ok())
    else {
        return stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n");
    };
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from_server, mut to_pod) = (stream.try_clone()?, pod.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_pod);
        let _ = to_pod.shutdown(Shutdown::Write);
    });
    let mut from_pod = pod;
    let copied = io::copy(&mut from_pod, &mut stream);
    let _ = stream.shutdown(Shutdown::Both);
    copied.map(drop)
}
