"""Scores pairs of texts with the real Matheel: one JSON request a line, one JSON answer a line."""

import json
import sys

from matheel.evaluation import _prepare_builtin_scoring_context, _score_builtin_pair
from matheel.preprocessing import preprocess_code

for line in sys.stdin:
    request = json.loads(line)
    if "preprocess" in request:
        answer = [
            preprocess_code(text, mode=request["preprocess"], language=request["language"])
            for text in request["texts"]
        ]
    else:
        texts = {str(number): text for number, text in enumerate(request["texts"])}
        context = _prepare_builtin_scoring_context(texts, request["options"], document_file_ids=set(texts))
        answer = [_score_builtin_pair(context, str(a), str(b)).hex() for a, b in request["pairs"]]
    print(json.dumps(answer), flush=True)
