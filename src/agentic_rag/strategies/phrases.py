"""What this program itself says in an answer, in the language of the question."""

from typing import Literal

from agentic_rag.text.language import is_chinese

Phrase = Literal[
    "no_model",
    "model_failed",
    "cut_off_thinking",
    "empty_reply",
    "nothing_found",
    "not_related",
    "nearest",
    "empty_knowledge_base",
    "nothing_matches_filter",
    "unmatched",
    "cut_short",
    "demonstration",
    "demonstration_chinese",
]

_ENGLISH: dict[Phrase, str] = {
    "no_model": "The passages nearest to the question:",
    "model_failed": "The model could not answer. The passages nearest to the question:",
    "cut_off_thinking": "The model gave no answer: it was cut off while it was still thinking. "
    "The passages nearest to the question:",
    "empty_reply": "The model gave no answer: its reply was empty. "
    "The passages nearest to the question:",
    "nothing_found": "No passage was found.",
    "not_related": "The documents do not hold an answer to this.",
    "nearest": "The nearest passages, though not clearly related:",
    "empty_knowledge_base": "The documents do not hold an answer: nothing is indexed yet. "
    "Index some with `arag index PATH`.",
    "nothing_matches_filter": "The documents do not hold an answer: "
    "none of them passes the filter.",
    "unmatched": "No sentence above could be matched to the documents. "
    "The passages nearest to the question:",
    "cut_short": "The search was cut short before there was an answer. The passages found:",
    "demonstration": "(Written by SmolLM2-135M, a demonstration model that often errs: check it "
    "against the sources. The setting `model` takes a real one.)",
    "demonstration_chinese": "The demonstration model knows no Chinese. "
    "The passages nearest to the question:",
}
_CHINESE: dict[Phrase, str] = {
    "no_model": "与问题最接近的段落：",
    "model_failed": "模型未能作答。与问题最接近的段落：",
    "cut_off_thinking": "模型没有给出答案：它在思考途中被截断。与问题最接近的段落：",
    "empty_reply": "模型没有给出答案：回复为空。与问题最接近的段落：",
    "nothing_found": "没有找到任何段落。",
    "not_related": "文档中没有这个问题的答案。",
    "nearest": "最接近的段落如下，但未必相关：",
    "empty_knowledge_base": "文档中没有答案：尚未索引任何内容。请先运行 `arag index PATH`。",
    "nothing_matches_filter": "文档中没有答案：没有文档符合筛选条件。",
    "unmatched": "以上内容未能与文档对应。与问题最接近的段落：",
    "cut_short": "检索在得出答案之前被中止。已找到的段落：",
    "demonstration": "（由演示模型 SmolLM2-135M 撰写，常有错误，请对照来源核实；"
    "设置 `model` 可换用真正的模型。）",
    "demonstration_chinese": "演示模型不懂中文。与问题最接近的段落：",
}
# What the prompts ask a model to begin with when the passages do not hold the answer.
NOT_FOUND = ("not in the documents", "文档中没有")


def say(phrase: Phrase, question: str) -> str:
    """`phrase` in the language of `question`."""
    return (_CHINESE if is_chinese(question) else _ENGLISH)[phrase]


def says_not_found(text: str) -> bool:
    """Whether a model's answer says, in the words it was asked for, that nothing was found."""
    return text.lstrip(' *_#>"“').lower().startswith(NOT_FOUND)
