//! Threads for handed-off connections. Each thread polls its sockets and runs the requests itself,
//! because waking another thread takes longer than most queries.

use std::collections::HashMap;
use std::future::Future;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Events, Token};
use parking_lot::Mutex;
use tidemark_types::{EngineError, EngineResult};
use tokio::sync::oneshot;

use super::connection::{Handoff, HandoffResult};
use super::serve;
use crate::runtime::guard;
use crate::runtime::open_handoffs::Control;
use crate::runtime::workers::WORKER_STACK_BYTES;

/// Maximum number of threads, shared by all databases in the process.
const MAX_THREADS: usize = 4;
/// Interval at which idle connections are checked.
const TICK: Duration = Duration::from_millis(250);
/// Time after a response during which the thread busy-polls for the next request, because waking a
/// thread takes longer than most responses.
const SOON: Duration = Duration::from_micros(250);
/// Poll token for messages from other threads.
const INBOX: Token = Token(usize::MAX);
const EVENTS: usize = 256;

type Answer = EngineResult<HandoffResult>;

/// Serves a handoff on the thread with the fewest handoffs.
pub(super) fn spawn(handoff: Handoff) -> EngineResult<oneshot::Receiver<Answer>> {
    static THREADS: OnceLock<Vec<Arc<SocketThread>>> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let starting = STARTING.lock();
    let threads = if let Some(threads) = THREADS.get() {
        threads
    } else {
        let started = SocketThread::start_all();
        let started = started.map_err(|error| EngineError::io("cannot start a thread", &error))?;
        THREADS.get_or_init(|| started)
    };
    drop(starting);
    let thread = threads.iter().min_by_key(|thread| thread.load.load(Ordering::Relaxed));
    let thread =
        thread.ok_or_else(|| EngineError::internal("no thread is available for connections"))?;
    let (done, answer) = oneshot::channel();
    thread.load.fetch_add(1, Ordering::Relaxed);
    thread.say(Message::Begin(Box::new(handoff), done))?;
    Ok(answer)
}

struct SocketThread {
    inbox: Mutex<Vec<Message>>,
    waker: mio::Waker,
    /// Number of connections that the thread serves.
    load: AtomicUsize,
}

enum Message {
    Begin(Box<Handoff>, oneshot::Sender<Answer>),
    Wake(Token),
}

/// Waker for one of a thread's connections.
struct Wakes {
    thread: Arc<SocketThread>,
    token: Token,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        // Ignores a failure, because the thread checks all its connections at the next tick.
        let _ = self.thread.say(Message::Wake(self.token));
    }
}

/// A running handoff.
struct Task {
    stream: Arc<TcpStream>,
    control: Arc<Control>,
    work: Pin<Box<dyn Future<Output = HandoffResult> + Send>>,
    waker: Waker,
    done: oneshot::Sender<Answer>,
}

impl SocketThread {
    fn start_all() -> std::io::Result<Vec<Arc<Self>>> {
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        (0..count).map(|_| Self::start()).collect()
    }

    fn start() -> std::io::Result<Arc<Self>> {
        let poll = mio::Poll::new()?;
        let waker = mio::Waker::new(poll.registry(), INBOX)?;
        let thread = Arc::new(Self { inbox: Mutex::default(), waker, load: AtomicUsize::new(0) });
        let own = Arc::clone(&thread);
        let builder = std::thread::Builder::new().name("tidemark-sockets".to_owned());
        let builder = builder.stack_size(WORKER_STACK_BYTES);
        builder.spawn(move || Connections::new(own, poll).run())?;
        Ok(thread)
    }

    fn say(&self, message: Message) -> EngineResult<()> {
        self.inbox.lock().push(message);
        self.waker.wake().map_err(|error| EngineError::io("cannot wake a thread", &error))
    }
}

/// A socket thread's state.
struct Connections {
    thread: Arc<SocketThread>,
    poll: mio::Poll,
    tasks: HashMap<Token, Task>,
    last: usize,
    awake: Awake,
}

impl Connections {
    fn new(thread: Arc<SocketThread>, poll: mio::Poll) -> Self {
        Self { thread, poll, tasks: HashMap::new(), last: 0, awake: Awake::default() }
    }

    fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        let mut next_tick = Instant::now() + TICK;
        loop {
            let timeout = if self.tasks.is_empty() {
                self.awake.sleep();
                None
            } else {
                Some(self.awake.timeout())
            };
            // An interrupted poll returns no events, so its error is ignored.
            let _ = self.poll.poll(&mut events, timeout);
            for event in events.iter().filter(|event| event.is_read_closed()) {
                if let Some(task) = self.tasks.get(&event.token()) {
                    task.control.client_left();
                }
            }
            let mut ready: Vec<Token> = events.iter().map(Event::token).collect();
            if ready.contains(&INBOX) {
                ready.retain(|token| *token != INBOX);
                self.read_inbox(&mut ready);
            }
            if Instant::now() >= next_tick {
                ready.extend(self.tasks.keys());
                next_tick = Instant::now() + TICK;
            } else {
                self.awake.note(!ready.is_empty());
            }
            for token in ready {
                self.resume(token);
            }
            self.awake.answered();
        }
    }

    fn read_inbox(&mut self, ready: &mut Vec<Token>) {
        let messages = std::mem::take(&mut *self.thread.inbox.lock());
        for message in messages {
            match message {
                Message::Wake(token) => ready.push(token),
                Message::Begin(handoff, done) => match self.begin(*handoff) {
                    Ok((token, task)) => {
                        self.tasks.insert(token, task(done));
                        ready.push(token);
                    }
                    Err(error) => self.ended(done, Err(error)),
                },
            }
        }
    }

    fn begin(
        &mut self,
        handoff: Handoff,
    ) -> EngineResult<(Token, impl FnOnce(oneshot::Sender<Answer>) -> Task + use<>)> {
        self.last = (self.last + 1) % INBOX.0;
        let token = Token(self.last);
        let (stream, control) = (Arc::clone(&handoff.stream), Arc::clone(&handoff.control));
        watch(self.poll.registry(), &stream, token)
            .map_err(|error| EngineError::io("cannot register a socket for polling", &error))?;
        let waker = Waker::from(Arc::new(Wakes { thread: Arc::clone(&self.thread), token }));
        let work = Box::pin(async move { serve::serve(&handoff).await });
        Ok((token, move |done| Task { stream, control, work, waker, done }))
    }

    /// Polls a connection's handoff; ignores a connection that has ended.
    fn resume(&mut self, token: Token) {
        let Some(task) = self.tasks.get_mut(&token) else { return };
        let mut context = Context::from_waker(&task.waker);
        let polled = catch_unwind(AssertUnwindSafe(|| task.work.as_mut().poll(&mut context)));
        let answer = match polled {
            Ok(Poll::Pending) => return,
            Ok(Poll::Ready(back)) => Ok(back),
            Err(payload) => Err(guard::panicked("handoff", &*payload)),
        };
        if let Some(Task { stream, done, work, .. }) = self.tasks.remove(&token) {
            // Removes the socket explicitly, because closing a duplicated descriptor does not end
            // the polling.
            let _ = forget(self.poll.registry(), &stream);
            drop((work, stream));
            self.ended(done, answer);
        }
    }

    fn ended(&self, done: oneshot::Sender<Answer>, answer: Answer) {
        self.thread.load.fetch_sub(1, Ordering::Relaxed);
        // Sending fails if the database has been closed, because the receiver is then gone.
        let _ = done.send(answer);
    }
}

#[cfg(unix)]
fn watch(registry: &mio::Registry, stream: &TcpStream, token: Token) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;

    let descriptor = stream.as_raw_fd();
    let mut source = mio::unix::SourceFd(&descriptor);
    let interest = mio::Interest::READABLE | mio::Interest::WRITABLE;
    registry.register(&mut source, token, interest)
}

#[cfg(unix)]
fn forget(registry: &mio::Registry, stream: &TcpStream) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;

    registry.deregister(&mut mio::unix::SourceFd(&stream.as_raw_fd()))
}

#[cfg(not(unix))]
fn watch(_: &mio::Registry, _: &TcpStream, _: Token) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(not(unix))]
fn forget(_: &mio::Registry, _: &TcpStream) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Ensures that at most one thread busy-polls between a client's requests.
#[derive(Default)]
struct Awake {
    answered: Option<Instant>,
    /// Whether the last request arrived soon after a response.
    is_quick: bool,
    is_watching: bool,
}

static IS_ONE_AWAKE: AtomicBool = AtomicBool::new(false);

impl Awake {
    /// Returns the maximum time to sleep.
    fn timeout(&mut self) -> Duration {
        let is_soon = self.answered.is_some_and(|at| at.elapsed() < SOON);
        if self.is_quick && is_soon && self.may_watch() {
            // Lets other threads use this CPU core.
            std::thread::yield_now();
            return Duration::ZERO;
        }
        self.sleep();
        TICK
    }

    fn may_watch(&mut self) -> bool {
        let order = Ordering::AcqRel;
        let free = || IS_ONE_AWAKE.compare_exchange(false, true, order, Ordering::Relaxed).is_ok();
        self.is_watching = self.is_watching || free();
        self.is_watching
    }

    fn sleep(&mut self) {
        if std::mem::take(&mut self.is_watching) {
            IS_ONE_AWAKE.store(false, Ordering::Release);
        }
    }

    fn note(&mut self, has_come: bool) {
        if has_come {
            self.is_quick = self.answered.is_some_and(|at| at.elapsed() < SOON);
            self.answered = None;
        }
    }

    fn answered(&mut self) {
        if self.answered.is_none() {
            self.answered = Some(Instant::now());
        }
    }
}
