//! The level that an older server logs from: one for the whole connection, set when a call asks for another. Servers of
//! 2026-07-28 are told with each request instead.

use plenipo_wire::object;
use plenipo_wire::protocol::methods;

use super::Connection;
use crate::call::LogLevel;
use crate::peer::WarningKind;

impl Connection {
    /// Sets it, unless it is set, or the server does not log. A server that refuses is not asked again, and called all the
    /// same.
    pub(crate) async fn log_from(&self, level: LogLevel) {
        let logs = object::member(self.capabilities().as_raw(), "logging").is_some();
        if self.modern().is_some() || !logs {
            return;
        }
        let mut set = self.log_level.lock().await;
        if *set == Some(level) {
            return;
        }
        let limit = self.options.start_timeout;
        let asked = self.peer.request(methods::SET_LOG_LEVEL, limit, |params| {
            params.string("level", level.as_str());
        });
        if asked.await.is_err() {
            self.peer.warn_once(WarningKind::LogLevel, || {
                format!("it says that it logs, and does not take the level `{}`", level.as_str())
            });
        }
        *set = Some(level);
    }
}
