//! A folder, a box of tools that works in it, and somebody to ask.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aside_confine::{Confine, Helper, Limit, Places, Wish};
use aside_core::block::{Arguments, CallId, ToolCall, ToolResult};
use aside_core::question::Tier;
use aside_engine::tools::{Asker, Mode, Permissions, Permit, Question, Rules, Toolbox, Workplace};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// A folder with a `root` to work in; what lies beside it is outside.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(path.join("root")).unwrap();
        Scratch(fs::canonicalize(path).unwrap())
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file below the root and the folders on the way.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap()
    }

    /// Unconfined, so that it is the same on every machine.
    pub(crate) fn work(&self) -> Workplace {
        self.work_with(self.confine(Wish::Off))
    }

    pub(crate) fn work_with(&self, confine: Confine) -> Workplace {
        Workplace::open(&self.root()).unwrap().confined(Arc::new(confine))
    }

    /// As well as this machine can, with the helper of this crate.
    pub(crate) fn confine(&self, wish: Wish) -> Confine {
        let helper = Helper::at(env!("CARGO_BIN_EXE_aside-engine-helper"));
        Confine::new(helper, wish, Places::here(self.root()))
    }

    /// Every tier that this machine has, each as the best one; always `none`.
    pub(crate) fn tiers(&self) -> Vec<Tier> {
        let best = self.confine(Wish::Auto).best();
        [Tier::None, Tier::Seatbelt, Tier::Kernel, Tier::Strong]
            .into_iter()
            .filter(|tier| *tier <= best && self.at_most(*tier).best() == *tier)
            .collect()
    }

    pub(crate) fn at_most(&self, tier: Tier) -> Confine {
        self.confine(Wish::Auto).limited(Limit { tier, ..Limit::NONE })
    }

    pub(crate) fn tools_at(&self, tier: Tier, rules: &[(&str, &str)], mode: Mode) -> Toolbox {
        Toolbox::standard(&self.work_with(self.at_most(tier)), Permissions::new(rules_of(rules), mode))
    }

    pub(crate) fn tools(&self, mode: Mode) -> Toolbox {
        self.tools_under(&[], mode)
    }

    pub(crate) fn tools_under(&self, rules: &[(&str, &str)], mode: Mode) -> Toolbox {
        Toolbox::standard(&self.work(), Permissions::new(rules_of(rules), mode))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn rules_of(rows: &[(&str, &str)]) -> Rules {
    let mut rules = Rules::new();
    for (key, word) in rows {
        rules.add(key, word).unwrap();
    }
    rules
}

pub(crate) fn call(tool: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        id: CallId::Given("c1".to_owned()),
        name: tool.to_owned(),
        arguments: Arguments::parse(arguments.to_string()),
        seal: None,
        native: None,
    }
}

pub(crate) async fn run(tools: &Toolbox, asker: &dyn Asker, tool: &str, arguments: Value) -> ToolResult {
    tools.run(&call(tool, &arguments), asker, &CancellationToken::new()).await
}

/// What came of a call that should work.
pub(crate) async fn ok(tools: &Toolbox, tool: &str, arguments: Value) -> String {
    let result = run(tools, &Nobody, tool, arguments).await;
    assert!(!result.is_error, "{}", result.content);
    result.content
}

/// What came of a call that should not.
pub(crate) async fn fails(tools: &Toolbox, tool: &str, arguments: Value) -> String {
    let result = run(tools, &Nobody, tool, arguments).await;
    assert!(result.is_error, "{}", result.content);
    result.content
}

pub(crate) use aside_engine::tools::NobodyToAsk as Nobody;

/// Answers in order, then no, and remembers what was asked.
#[derive(Default)]
pub(crate) struct Scripted {
    answers: Mutex<Vec<Permit>>,
    questions: Mutex<Vec<Question>>,
    troubles: Mutex<Vec<String>>,
    /// Questions open at this moment, and the most that ever were.
    open: AtomicUsize,
    most_open: AtomicUsize,
    /// Done while the user thinks.
    meanwhile: Option<Box<dyn Fn() + Send + Sync>>,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Permit>) -> Scripted {
        let mut answers: Vec<Permit> = answers.into_iter().collect();
        answers.reverse();
        Scripted { answers: Mutex::new(answers), ..Scripted::default() }
    }

    pub(crate) fn meanwhile(mut self, deed: impl Fn() + Send + Sync + 'static) -> Scripted {
        self.meanwhile = Some(Box::new(deed));
        self
    }

    pub(crate) fn questions(&self) -> Vec<Question> {
        self.questions.lock().unwrap().clone()
    }

    pub(crate) fn troubles(&self) -> Vec<String> {
        self.troubles.lock().unwrap().clone()
    }

    pub(crate) fn most_open(&self) -> usize {
        self.most_open.load(Ordering::SeqCst)
    }
}

impl Asker for Scripted {
    fn ask(&self, question: Question) -> BoxFuture<'_, Permit> {
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_open.fetch_max(open, Ordering::SeqCst);
            self.questions.lock().unwrap().push(question);
            // Others could ask now if they were let.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            if let Some(deed) = &self.meanwhile {
                deed();
            }
            self.open.fetch_sub(1, Ordering::SeqCst);
            self.answers.lock().unwrap().pop().unwrap_or(Permit::No(None))
        })
    }

    fn trouble(&self, what: &str) {
        self.troubles.lock().unwrap().push(what.to_owned());
    }
}

/// Never answers.
pub(crate) struct Asleep;

impl Asker for Asleep {
    fn ask(&self, _question: Question) -> BoxFuture<'_, Permit> {
        Box::pin(std::future::pending())
    }
}
