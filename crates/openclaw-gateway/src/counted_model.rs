//! A model whose requests, tokens and cost are counted (N4).

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use openclaw_metrics::labels::{Success, TokenKind};
use openclaw_metrics::{Metrics, ModelSeries};
use openclaw_models::{Chunk, Model, ModelError, ModelRequest, Usage};
use openclaw_tools::schema::SchemaDialect;

#[derive(Debug)]
struct CountedModel {
    model: Arc<dyn Model>,
    series: Arc<ModelSeries>,
}

/// Counts the requests to a model, if anything is counted.
pub(crate) fn counted(model: Arc<dyn Model>, metrics: &Metrics) -> Arc<dyn Model> {
    match metrics.model(model.name()) {
        Some(series) => Arc::new(CountedModel { model, series }),
        None => model,
    }
}

impl Model for CountedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn dialect(&self) -> SchemaDialect {
        self.model.dialect()
    }

    fn context_tokens(&self) -> u64 {
        self.model.context_tokens()
    }

    fn takes_tools(&self) -> bool {
        self.model.takes_tools()
    }

    fn stream<'a>(&'a self, request: ModelRequest) -> BoxStream<'a, Result<Chunk, ModelError>> {
        let mut tally = Tally { series: &self.series, usage: Usage::default(), ended: None };
        let chunks = self.model.stream(request);
        Box::pin(chunks.inspect(move |chunk| tally.see(chunk)))
    }
}

/// The usage of one request, counted when its stream is dropped: a cancelled one has used tokens,
/// too.
struct Tally<'a> {
    series: &'a ModelSeries,
    usage: Usage,
    ended: Option<Success>,
}

impl Tally<'_> {
    fn see(&mut self, chunk: &Result<Chunk, ModelError>) {
        match chunk {
            // The last one counts.
            Ok(Chunk::Usage(usage)) => self.usage = *usage,
            Ok(Chunk::End(_)) => self.ended = Some(Success::Ok),
            Err(_) => self.ended = Some(Success::Error),
            Ok(_) => {}
        }
    }
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        let Usage { input_tokens, output_tokens, cached_tokens, cost_usd } = self.usage;
        self.series.used(TokenKind::Input, input_tokens);
        self.series.used(TokenKind::Output, output_tokens);
        self.series.used(TokenKind::Cached, cached_tokens);
        self.series.cost(cost_usd.unwrap_or(0.0));
        if let Some(ended) = self.ended {
            self.series.answered(ended);
        }
    }
}
