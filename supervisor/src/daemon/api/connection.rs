//! Connections: how many, how long they may take to say something, and how long to take what they asked for.

use crate::daemon::auth::Door;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio::time::Sleep;
use tower::ServiceExt;

/// The most connections at a time, of one door.
const CONNECTIONS: usize = 128;
/// The head of a request comes in within this time; a connection that says nothing is closed after it.
const HEAD: Duration = Duration::from_secs(10);
/// The largest head of a request.
const HEAD_BYTES: usize = 16 << 10;
/// A reader who takes nothing for so long is left.
const STALLED: Duration = Duration::from_secs(20);
/// A pause after an accept that failed: out of descriptors, most likely.
const BREATH: Duration = Duration::from_millis(50);

/// Where connections come from.
pub enum Listener {
    /// The Unix socket.
    Unix(UnixListener),
    /// TCP on loopback.
    Tcp(TcpListener, u16),
}

/// Serves all that comes in, for ever.
pub async fn serve(listener: Listener, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    match listener {
        Listener::Unix(listener) => loop {
            match listener.accept().await {
                Ok((stream, _)) => take(stream, Door::Unix, &router, &places),
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        },
        Listener::Tcp(listener, port) => loop {
            match listener.accept().await {
                Ok((stream, _)) => take(stream, Door::Tcp(port), &router, &places),
                Err(_) => tokio::time::sleep(BREATH).await,
            }
        },
    }
}

fn take<S>(stream: S, door: Door, router: &Router, places: &Arc<Semaphore>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut stream = Patient::new(stream);
    let Ok(place) = Arc::clone(places).try_acquire_owned() else {
        tokio::spawn(async move {
            let full = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(full).await;
        });
        return;
    };
    let router = router.clone();
    let service = tower::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(door);
        router.clone().oneshot(request.map(axum::body::Body::new))
    });
    tokio::spawn(async move {
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        // Whatever went wrong is the client's: it is gone, or was told.
        let _ = served.await;
        drop(place);
    });
}

/// A stream that is given up when its reader takes nothing for [`STALLED`].
struct Patient<S> {
    inner: S,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    fn new(inner: S) -> Self {
        Self {
            inner,
            waiting: None,
        }
    }

    /// Passes on what became of a write, and begins, goes on or stops waiting by it.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(STALLED)));
        match waiting.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        self.watch(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.inner).poll_shutdown(context);
        self.watch(context, shut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_who_takes_nothing_is_left() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (one, _other) = tokio::io::duplex(8);
            let mut patient = Patient::new(one);
            patient.write_all(b"12345678").await.unwrap();
            let before = tokio::time::Instant::now();
            let error = patient.write_all(b"9").await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            assert!(before.elapsed() >= STALLED);
        });
    }
}
