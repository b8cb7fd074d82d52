//! Revokes handoffs when a client requests a cancellation, permissions change, or the server shuts
//! down.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use futures::task::AtomicWaker;
use parking_lot::Mutex;

use crate::runtime::cancel::CancelToken;

/// First id for executions in handoffs. It is far above the ids assigned elsewhere.
const FIRST_EXECUTION: u64 = 1 << 48;

/// All of a database's handoffs.
#[derive(Debug, Default)]
pub(crate) struct Handoffs {
    open: Mutex<HashMap<u64, Arc<Control>>>,
    executions: AtomicU64,
}

impl Handoffs {
    /// Registers a handoff; returns false if its id is already in use.
    pub(crate) fn begin(&self, id: u64, control: &Arc<Control>) -> bool {
        self.open.lock().insert(id, Arc::clone(control)).is_none()
    }

    pub(crate) fn end(&self, id: u64) {
        self.open.lock().remove(&id);
    }

    /// Revokes a handoff; returns false for an unknown id. With `gently`, the running statement may
    /// finish.
    pub(crate) fn revoke(&self, id: u64, gently: bool) -> bool {
        let open = self.open.lock();
        open.get(&id).map(|control| control.revoke(gently)).is_some()
    }

    /// Revokes all handoffs.
    pub(crate) fn recall_all(&self) {
        self.open.lock().values().for_each(|control| control.revoke(false));
    }

    pub(crate) fn next_execution(&self) -> u64 {
        FIRST_EXECUTION + self.executions.fetch_add(1, Ordering::Relaxed)
    }
}

/// Revokes a handoff or stops its execution from another thread.
#[derive(Debug, Default)]
pub(crate) struct Control {
    is_recalled: AtomicBool,
    /// Whether the client has closed the sending side of its connection.
    has_left: AtomicBool,
    /// The running execution's token.
    running: Mutex<Option<CancelToken>>,
    waker: AtomicWaker,
}

impl Control {
    fn revoke(&self, gently: bool) {
        self.is_recalled.store(true, Ordering::SeqCst);
        if !gently {
            self.stop();
        }
        self.waker.wake();
    }

    fn stop(&self) {
        if let Some(token) = &*self.running.lock() {
            token.cancel();
        }
    }

    pub(crate) fn client_left(&self) {
        self.has_left.store(true, Ordering::SeqCst);
    }

    /// Stops the running execution if the client has closed the sending side of its connection.
    pub(crate) fn stop_if_left(&self) {
        if self.has_left.load(Ordering::SeqCst) {
            self.stop();
        }
    }

    pub(crate) fn is_recalled(&self) -> bool {
        self.is_recalled.load(Ordering::SeqCst)
    }

    pub(crate) fn wait(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Registers an execution; returns false if the handoff was revoked.
    pub(crate) fn begins(&self, token: &CancelToken) -> bool {
        *self.running.lock() = Some(token.clone());
        !self.is_recalled()
    }

    pub(crate) fn ended(&self) {
        *self.running.lock() = None;
    }
}
