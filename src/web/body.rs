//! Bodies of requests and answers.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use futures_util::StreamExt;
use http_body::{Frame, SizeHint};

/// The largest body of a request, in bytes: as much as most MCP servers accept, and far more than a model writes in a
/// call. With the most calls at the same time, bodies take 256 MiB.
pub const LARGEST: usize = 4 << 20;

/// A body that is too large, but not larger than this, is read to its end and dropped. Most clients read the answer only
/// after they sent the whole request.
const DROPPED: usize = 4 * LARGEST;

/// The time in which a body must arrive. Arbitrary: at 140 kB/s, the largest body arrives in this time.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a body is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The body is larger than [`LARGEST`].
    TooLarge,
    /// The body did not arrive in time.
    TooSlow,
    /// The connection ended.
    Ended,
}

/// Reads the body of a request.
pub async fn read(body: Body) -> Result<Vec<u8>, Unread> {
    read_within(body, PATIENCE).await
}

async fn read_within(body: Body, patience: Duration) -> Result<Vec<u8>, Unread> {
    if body.size_hint().lower() > DROPPED as u64 {
        return Err(Unread::TooLarge);
    }
    let all = async {
        let (mut pieces, mut read, mut count) = (body.into_data_stream(), Vec::new(), 0);
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| Unread::Ended)?;
            count += piece.len();
            match count {
                _ if count <= LARGEST => read.extend_from_slice(&piece),
                _ if count <= DROPPED => read = Vec::new(),
                _ => return Err(Unread::TooLarge),
            }
        }
        if count > LARGEST { Err(Unread::TooLarge) } else { Ok(read) }
    };
    tokio::time::timeout(patience, all).await.unwrap_or(Err(Unread::TooSlow))
}

/// Returns `body`, which keeps `held` until it is sent or given up.
pub fn holding<T: Send + Unpin + 'static>(body: Body, held: T) -> Body {
    Body::new(Holding { body, _held: held })
}

struct Holding<T> {
    body: Body,
    _held: T,
}

impl<T: Unpin> HttpBody for Holding<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[tokio::test]
    async fn a_body_that_is_too_large_or_too_slow_is_not_read() {
        assert_eq!(read(Body::from("abc")).await, Ok(b"abc".to_vec()));
        for length in [LARGEST + 1, DROPPED + 1] {
            assert_eq!(read(Body::from(vec![0; length])).await, Err(Unread::TooLarge));
        }
        let piece = || Ok::<_, std::io::Error>(Bytes::from(vec![0; LARGEST / 2 + 1]));
        let unsized_body = Body::from_stream(stream::iter([piece(), piece()]));
        assert_eq!(read(unsized_body).await, Err(Unread::TooLarge));
        let broken = Body::from_stream(stream::iter([Err::<Bytes, _>(std::io::Error::other("gone"))]));
        assert_eq!(read(broken).await, Err(Unread::Ended));
        let slow = stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
        });
        let read = read_within(Body::from_stream(slow), Duration::from_millis(20));
        assert_eq!(read.await, Err(Unread::TooSlow));
    }

    #[test]
    fn what_an_answer_holds_ends_with_it() {
        let held = std::sync::Arc::new(());
        let body = holding(Body::from("abc"), std::sync::Arc::clone(&held));
        assert_eq!((body.size_hint().exact(), std::sync::Arc::strong_count(&held)), (Some(3), 2));
        drop(body);
        assert_eq!(std::sync::Arc::strong_count(&held), 1);
    }
}
