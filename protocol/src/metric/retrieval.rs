//! The five retrieval metrics. All of them are functions of the ranks of the relevant documents, so that is all that is
//! computed: no ranking of a whole corpus is built.

use std::cmp::Ordering;

/// The gold of one retrieval dataset, prepared once and used for every method.
#[derive(Debug)]
pub struct RetrievalGold {
    /// Query rows by query id: the order in which means are added up.
    query_order: Vec<u32>,
    /// For every document row its place among the document ids, which decides ties.
    document_place: Vec<u32>,
    /// Where the relevant documents of query row `q` begin; one more entry closes the last.
    starts: Vec<u32>,
    /// Relevant documents and their relevance, grouped by query row.
    relevant: Vec<(u32, f64)>,
    /// Source files of queries and documents when candidates of the same file are left out.
    excluded: Option<(Vec<u32>, Vec<u32>)>,
}

/// The retrieval metrics of one dataset, each a mean over its queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetrievalMetrics {
    /// See [`super::METRICS`].
    pub mean_average_precision: f64,
    /// See [`super::METRICS`].
    pub mean_reciprocal_rank: f64,
    /// See [`super::METRICS`].
    pub ndcg_at_k: f64,
    /// See [`super::METRICS`].
    pub precision_at_k: f64,
    /// See [`super::METRICS`].
    pub recall_at_k: f64,
}

impl RetrievalMetrics {
    /// The value of a metric by name; `None` when it is no retrieval metric.
    pub fn get(&self, name: &str) -> Option<f64> {
        match name {
            "mean_average_precision" => Some(self.mean_average_precision),
            "mean_reciprocal_rank" => Some(self.mean_reciprocal_rank),
            "ndcg_at_k" => Some(self.ndcg_at_k),
            "precision_at_k" => Some(self.precision_at_k),
            "recall_at_k" => Some(self.recall_at_k),
            _ => None,
        }
    }
}

/// The metrics of one query.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct QueryMetrics {
    average_precision: f64,
    reciprocal_rank: f64,
    ndcg: f64,
    precision: f64,
    recall: f64,
}

/// Positions of `ids` sorted by id in code point order.
fn sorted_positions<S: AsRef<str>>(ids: &[S]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    order.sort_by(|&a, &b| ids[a as usize].as_ref().cmp(ids[b as usize].as_ref()));
    order
}

impl RetrievalGold {
    /// Prepares the gold. Ids are by row; `judgments` are (query row, document row, relevance) with finite relevance of
    /// at least 0; `same_file` holds the file of each query row and document row when a protocol excludes candidates
    /// of the same file. Judgments of rows that do not exist are a fault of the caller and are left out.
    pub fn new<S: AsRef<str>>(
        query_ids: &[S],
        document_ids: &[S],
        judgments: &[(u32, u32, f64)],
        same_file: Option<(&[u32], &[u32])>,
    ) -> Self {
        let mut document_place = vec![0; document_ids.len()];
        for (place, &row) in sorted_positions(document_ids).iter().enumerate() {
            document_place[row as usize] = place as u32;
        }
        let positive = || {
            judgments.iter().filter(|&&(query, document, relevance)| {
                relevance > 0.0
                    && (query as usize) < query_ids.len()
                    && (document as usize) < document_ids.len()
            })
        };
        let mut starts = vec![0; query_ids.len() + 1];
        for &(query, _, _) in positive() {
            starts[query as usize + 1] += 1;
        }
        for row in 1..starts.len() {
            starts[row] += starts[row - 1];
        }
        let mut next = starts.clone();
        let mut relevant = vec![(0, 0.0); starts.last().map_or(0, |&end| end as usize)];
        for &(query, document, relevance) in positive() {
            let at = &mut next[query as usize];
            relevant[*at as usize] = (document, relevance);
            *at += 1;
        }
        Self {
            query_order: sorted_positions(query_ids),
            document_place,
            starts,
            relevant,
            excluded: same_file.map(|(queries, documents)| (queries.to_vec(), documents.to_vec())),
        }
    }

    /// How many queries there are.
    pub fn queries(&self) -> usize {
        self.query_order.len()
    }

    /// How many documents there are.
    pub fn documents(&self) -> usize {
        self.document_place.len()
    }

    /// True when the candidate counts: it is not of the query's own file, or nothing is left out.
    pub fn is_candidate(&self, query: usize, document: usize) -> bool {
        self.excluded
            .as_ref()
            .is_none_or(|(queries, documents)| queries[query] != documents[document])
    }

    /// How many candidates count.
    pub fn candidates(&self) -> u64 {
        let Some((queries, documents)) = &self.excluded else {
            return self.queries() as u64 * self.documents() as u64;
        };
        let mut files = documents.clone();
        files.sort_unstable();
        let same = |file: &u32| {
            files.partition_point(|other| other <= file)
                - files.partition_point(|other| other < file)
        };
        queries
            .iter()
            .map(|file| (documents.len() - same(file)) as u64)
            .sum()
    }

    /// The relevant documents of a query row with their relevance.
    fn relevant_of(&self, query: usize) -> &[(u32, f64)] {
        &self.relevant[self.starts[query] as usize..self.starts[query + 1] as usize]
    }

    /// Computes all metrics from the full matrix of finite scores, query by query, documents in corpus order. `None`
    /// when the matrix has another size, there is no query, or `k` is 0.
    pub fn compute(&self, scores: &[f64], k: u64) -> Option<RetrievalMetrics> {
        let documents = self.documents();
        if scores.len() != self.queries() * documents || self.query_order.is_empty() || k == 0 {
            return None;
        }
        let mut ranks = Ranks::default();
        let mut sums = Sums::default();
        for &query in &self.query_order {
            let query = query as usize;
            let row = &scores[query * documents..(query + 1) * documents];
            let relevant = self.relevant_of(query);
            let candidate = |document: usize| (row[document], self.document_place[document]);
            let is_candidate = |document: &usize| self.is_candidate(query, *document);
            let found = ranks.find(
                relevant
                    .iter()
                    .map(|&(document, relevance)| (document as usize, relevance))
                    .filter(|(document, _)| is_candidate(document))
                    .map(|(document, relevance)| {
                        let (score, place) = candidate(document);
                        (score, place, relevance)
                    }),
                (0..documents).filter(is_candidate).map(candidate),
            );
            let judged = relevant.iter().map(|&(_, relevance)| relevance).collect();
            sums.add(query_metrics(judged, found, k));
        }
        sums.mean(self.queries() as u64)
    }
}

/// Adds up queries; the order of addition decides the last bit.
#[derive(Debug, Default)]
struct Sums(QueryMetrics);

impl Sums {
    fn add(&mut self, query: QueryMetrics) {
        self.0.average_precision += query.average_precision;
        self.0.reciprocal_rank += query.reciprocal_rank;
        self.0.ndcg += query.ndcg;
        self.0.precision += query.precision;
        self.0.recall += query.recall;
    }

    fn mean(&self, queries: u64) -> Option<RetrievalMetrics> {
        let count = queries as f64;
        (queries > 0).then(|| RetrievalMetrics {
            mean_average_precision: self.0.average_precision / count,
            mean_reciprocal_rank: self.0.reciprocal_rank / count,
            ndcg_at_k: self.0.ndcg / count,
            precision_at_k: self.0.precision / count,
            recall_at_k: self.0.recall / count,
        })
    }
}

/// Queries in any order, to be averaged in order of their ids. Queries left out count as 0 in every metric.
#[derive(Debug, Default)]
pub(crate) struct QueryMeans<K>(Vec<(K, QueryMetrics)>);

impl<K: Ord> QueryMeans<K> {
    pub(crate) fn add(&mut self, id: K, query: QueryMetrics) {
        self.0.push((id, query));
    }

    /// The means over `queries` queries; `None` of nothing.
    pub(crate) fn over(&mut self, queries: u64) -> Option<RetrievalMetrics> {
        self.0.sort_by(|a, b| a.0.cmp(&b.0));
        let mut sums = Sums::default();
        for (_, query) in &self.0 {
            sums.add(*query);
        }
        sums.mean(queries)
    }
}

/// The candidates of one query, with document ids as they are.
#[derive(Debug)]
pub(crate) struct RankedQuery<K> {
    candidates: Vec<(f64, K)>,
    relevant: Vec<(f64, K, f64)>,
}

impl<K> Default for RankedQuery<K> {
    fn default() -> Self {
        Self {
            candidates: Vec::new(),
            relevant: Vec::new(),
        }
    }
}

impl<K: Ord + Copy> RankedQuery<K> {
    /// Adds a candidate with a finite score.
    pub(crate) fn push(&mut self, score: f64, document: K, relevance: f64) {
        self.candidates.push((score, document));
        if relevance > 0.0 {
            self.relevant.push((score, document, relevance));
        }
    }

    /// The metrics of the query when every relevant document is among its candidates.
    pub(crate) fn metrics(&self, k: u64) -> QueryMetrics {
        let mut ranks = Ranks::default();
        let found = ranks.find(
            self.relevant.iter().copied(),
            self.candidates.iter().copied(),
        );
        let judged = self.relevant.iter().map(|one| one.2).collect();
        query_metrics(judged, found, k)
    }
}

/// Finds the ranks of the relevant documents of one query after another, reusing its space.
#[derive(Debug)]
struct Ranks<K> {
    /// Relevant candidates as (score, id, relevance), best first.
    relevant: Vec<(f64, K, f64)>,
    /// How many candidates come before the relevant one of this index and after the one before it.
    before: Vec<u64>,
    /// Rank from 1 and relevance, best first.
    found: Vec<(u64, f64)>,
}

impl<K> Default for Ranks<K> {
    fn default() -> Self {
        Self {
            relevant: Vec::new(),
            before: Vec::new(),
            found: Vec::new(),
        }
    }
}

/// Better first: higher score, then smaller id.
fn by_rank<K: Ord + Copy>(a: (f64, K), b: (f64, K)) -> Ordering {
    b.0.partial_cmp(&a.0)
        .unwrap_or(Ordering::Equal)
        .then_with(|| a.1.cmp(&b.1))
}

impl<K: Ord + Copy> Ranks<K> {
    /// The ranks, from 1, of the relevant candidates among all candidates, best first, with their relevance.
    fn find(
        &mut self,
        relevant: impl Iterator<Item = (f64, K, f64)>,
        candidates: impl Iterator<Item = (f64, K)>,
    ) -> &[(u64, f64)] {
        self.relevant.clear();
        self.before.clear();
        self.found.clear();
        self.relevant.extend(relevant);
        if self.relevant.is_empty() {
            return &self.found;
        }
        self.relevant
            .sort_unstable_by(|a, b| by_rank((a.0, a.1), (b.0, b.1)));
        self.before.resize(self.relevant.len() + 1, 0);
        for candidate in candidates {
            let ahead = self
                .relevant
                .partition_point(|other| by_rank((other.0, other.1), candidate).is_le());
            self.before[ahead] += 1;
        }
        let mut ahead = 0;
        for (index, &(_, _, relevance)) in self.relevant.iter().enumerate() {
            ahead += self.before[index];
            self.found.push((ahead + 1, relevance));
        }
        &self.found
    }
}

/// The metrics of a query from the ranks of its relevant candidates (`found`, best first) and the relevance of all its
/// relevant judgments.
fn query_metrics(mut judged: Vec<f64>, found: &[(u64, f64)], k: u64) -> QueryMetrics {
    if judged.is_empty() {
        return QueryMetrics::default();
    }
    let total = judged.len() as f64;
    let mut metrics = QueryMetrics::default();
    let (mut precisions, mut gain, mut hits) = (0.0, 0.0, 0u64);
    for (index, &(rank, relevance)) in found.iter().enumerate() {
        precisions += (index + 1) as f64 / rank as f64;
        if rank <= k {
            hits += 1;
            gain += discounted(relevance, rank);
        }
    }
    metrics.average_precision = precisions / total;
    metrics.reciprocal_rank = found.first().map_or(0.0, |&(rank, _)| 1.0 / rank as f64);
    metrics.precision = hits as f64 / k as f64;
    metrics.recall = hits as f64 / total;
    judged.sort_unstable_by(|a, b| b.total_cmp(a));
    let best = (1..=k).zip(judged).fold(0.0, |sum, (rank, relevance)| {
        sum + discounted(relevance, rank)
    });
    if best != 0.0 {
        metrics.ndcg = gain / best;
    }
    metrics
}

/// Linear gain with a logarithmic discount.
fn discounted(relevance: f64, rank: u64) -> f64 {
    relevance / ((rank + 1) as f64).log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&'static str]) -> Vec<&'static str> {
        names.to_vec()
    }

    #[test]
    fn one_query_by_hand() {
        // Ranking: d1 (0.9), d2 (0.8, relevant 1), d3 (0.7), d4 (0.1, relevant 2).
        let gold = RetrievalGold::new(
            &ids(&["q"]),
            &ids(&["d4", "d3", "d2", "d1"]),
            &[(0, 0, 2.0), (0, 2, 1.0), (0, 1, 0.0)],
            None,
        );
        let metrics = gold.compute(&[0.1, 0.7, 0.8, 0.9], 2).unwrap();
        assert_eq!(metrics.mean_average_precision, f64::midpoint(0.5, 0.5));
        assert_eq!(metrics.mean_reciprocal_rank, 0.5);
        assert_eq!(metrics.precision_at_k, 0.5);
        assert_eq!(metrics.recall_at_k, 0.5);
        let ideal = 2.0 + 1.0 / 3f64.log2();
        assert_eq!(metrics.ndcg_at_k, (1.0 / 3f64.log2()) / ideal);
    }

    #[test]
    fn ties_go_by_code_point_of_the_document_id() {
        // "d10" comes before "d2", so the relevant d2 is second.
        let gold = RetrievalGold::new(&ids(&["q"]), &ids(&["d2", "d10"]), &[(0, 0, 1.0)], None);
        let metrics = gold.compute(&[0.5, 0.5], 1).unwrap();
        assert_eq!(metrics.mean_reciprocal_rank, 0.5);
        assert_eq!(metrics.precision_at_k, 0.0);
        // 0.0 and -0.0 tie too.
        assert_eq!(
            gold.compute(&[0.0, -0.0], 1).unwrap().mean_reciprocal_rank,
            0.5
        );
    }

    #[test]
    fn a_query_without_positives_counts_as_zero_and_k_beyond_the_corpus_divides_by_k() {
        let gold = RetrievalGold::new(&ids(&["a", "b"]), &ids(&["d"]), &[(0, 0, 1.0)], None);
        let metrics = gold.compute(&[0.5, 0.5], 4).unwrap();
        assert_eq!(metrics.mean_average_precision, 0.5);
        assert_eq!(metrics.precision_at_k, 0.125);
        assert_eq!(metrics.recall_at_k, 0.5);
    }

    #[test]
    fn candidates_of_the_same_file_are_left_out_before_ranking() {
        let (queries, documents) = ([7, 8], [7, 9]);
        let gold = RetrievalGold::new(
            &ids(&["a", "b"]),
            &ids(&["x", "y"]),
            &[(0, 1, 1.0)],
            Some((&queries, &documents)),
        );
        assert_eq!(gold.candidates(), 3);
        // x has the higher score but is the query's own file.
        let metrics = gold.compute(&[0.9, 0.1, 0.9, 0.1], 1).unwrap();
        assert_eq!(metrics.mean_reciprocal_rank, 0.5);
        assert_eq!(metrics.precision_at_k, 0.5);
    }

    #[test]
    fn a_matrix_of_another_size_has_no_metrics() {
        let gold = RetrievalGold::new(&ids(&["q"]), &ids(&["d"]), &[], None);
        assert_eq!(gold.compute(&[], 1), None);
        assert_eq!(gold.compute(&[0.5], 0), None);
        assert_eq!(gold.candidates(), 1);
    }
}
