//! Shared helpers: a folder with a toolbox, and scripted answers to questions.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aside_confine::{Confine, ConfineSetting, Helper, PolicyPaths, TierLimit};
use aside_core::block::{Arguments, CallId, ToolCall, ToolResult};
use aside_core::permission_question::Tier;
use aside_engine::tools::{
    Asker, PermissionAnswer, PermissionMode, PermissionQuestion, PermissionRules, Permissions, Toolbox, WorkingDir,
};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::folder_outside::{FolderOutside, folder_outside};

/// A folder with a `root` as the working directory; everything next to it is outside.
pub(crate) struct TestDir(PathBuf, #[expect(dead_code, reason = "removed last")] FolderOutside);

impl TestDir {
    pub(crate) fn new(name: &str) -> TestDir {
        let outside = folder_outside(env!("CARGO_TARGET_TMPDIR"));
        let path = outside.join(format!("{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(path.join("root")).unwrap();
        TestDir(fs::canonicalize(path).unwrap(), outside)
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file below the root and creates its folders.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.root().join(name)).unwrap()
    }

    /// Unconfined, to behave the same on every machine.
    pub(crate) fn work(&self) -> WorkingDir {
        self.work_with(self.confine(ConfineSetting::Off))
    }

    pub(crate) fn work_with(&self, confine: Confine) -> WorkingDir {
        WorkingDir::open(&self.root()).unwrap().with_confinement(Arc::new(confine))
    }

    /// The best confinement of this machine, with this crate's helper.
    pub(crate) fn confine(&self, setting: ConfineSetting) -> Confine {
        let helper = Helper::at(env!("CARGO_BIN_EXE_aside-engine-helper"));
        Confine::new(helper, setting, PolicyPaths::from_environment(self.root()))
    }

    /// All tiers that this machine supports, including `none`.
    pub(crate) fn tiers(&self) -> Vec<Tier> {
        let best = self.confine(ConfineSetting::Auto).best_tier();
        [Tier::None, Tier::Seatbelt, Tier::Kernel, Tier::Strong]
            .into_iter()
            .filter(|tier| *tier <= best && self.at_most(*tier).best_tier() == *tier)
            .collect()
    }

    pub(crate) fn at_most(&self, tier: Tier) -> Confine {
        self.confine(ConfineSetting::Auto).with_limit(TierLimit { tier, ..TierLimit::NONE })
    }

    pub(crate) fn tools_at(&self, tier: Tier, rules: &[(&str, &str)], mode: PermissionMode) -> Toolbox {
        Toolbox::standard(&self.work_with(self.at_most(tier)), Permissions::new(rules_of(rules), mode))
    }

    pub(crate) fn tools(&self, mode: PermissionMode) -> Toolbox {
        self.tools_with_rules(&[], mode)
    }

    pub(crate) fn tools_with_rules(&self, rules: &[(&str, &str)], mode: PermissionMode) -> Toolbox {
        Toolbox::standard(&self.work(), Permissions::new(rules_of(rules), mode))
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn rules_of(rows: &[(&str, &str)]) -> PermissionRules {
    let mut rules = PermissionRules::new();
    for (key, word) in rows {
        rules.add(key, word).unwrap();
    }
    rules
}

pub(crate) fn call(tool: &str, arguments: &Value) -> ToolCall {
    ToolCall::new(CallId::Given("c1".to_owned()), tool, Arguments::parse(arguments.to_string()))
}

pub(crate) async fn run(tools: &Toolbox, asker: &dyn Asker, tool: &str, arguments: Value) -> ToolResult {
    tools.run(&call(tool, &arguments), asker, &CancellationToken::new()).await
}

/// The result of a call that should succeed.
pub(crate) async fn ok(tools: &Toolbox, tool: &str, arguments: Value) -> String {
    let result = run(tools, &Nobody, tool, arguments).await;
    assert!(!result.is_error, "{}", result.content);
    result.content
}

/// The result of a call that should fail.
pub(crate) async fn fails(tools: &Toolbox, tool: &str, arguments: Value) -> String {
    let result = run(tools, &Nobody, tool, arguments).await;
    assert!(result.is_error, "{}", result.content);
    result.content
}

pub(crate) use aside_engine::tools::NobodyToAsk as Nobody;

/// Gives these answers in order, then denies. Records the questions.
#[derive(Default)]
pub(crate) struct ScriptedAsker {
    answers: Mutex<Vec<PermissionAnswer>>,
    questions: Mutex<Vec<PermissionQuestion>>,
    warnings: Mutex<Vec<String>>,
    /// The number of open questions now, and the highest number so far.
    open: AtomicUsize,
    max_open: AtomicUsize,
    /// An action to run while the question is open.
    meanwhile: Option<Box<dyn Fn() + Send + Sync>>,
}

impl ScriptedAsker {
    pub(crate) fn new(answers: impl IntoIterator<Item = PermissionAnswer>) -> ScriptedAsker {
        let mut answers: Vec<PermissionAnswer> = answers.into_iter().collect();
        answers.reverse();
        ScriptedAsker { answers: Mutex::new(answers), ..ScriptedAsker::default() }
    }

    pub(crate) fn meanwhile(mut self, action: impl Fn() + Send + Sync + 'static) -> ScriptedAsker {
        self.meanwhile = Some(Box::new(action));
        self
    }

    pub(crate) fn questions(&self) -> Vec<PermissionQuestion> {
        self.questions.lock().unwrap().clone()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.lock().unwrap().clone()
    }

    pub(crate) fn max_open(&self) -> usize {
        self.max_open.load(Ordering::SeqCst)
    }
}

impl Asker for ScriptedAsker {
    fn ask(&self, question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.max_open.fetch_max(open, Ordering::SeqCst);
            self.questions.lock().unwrap().push(question);
            // Gives other calls the chance to ask too.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            if let Some(action) = &self.meanwhile {
                action();
            }
            self.open.fetch_sub(1, Ordering::SeqCst);
            self.answers.lock().unwrap().pop().unwrap_or(PermissionAnswer::No(None))
        })
    }

    fn warn(&self, what: &str) {
        self.warnings.lock().unwrap().push(what.to_owned());
    }
}

/// Never answers.
pub(crate) struct SilentAsker;

impl Asker for SilentAsker {
    fn ask(&self, _question: PermissionQuestion) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(std::future::pending())
    }
}
