"""Which encoding a file is in: a table of samples, and round trips."""

import codecs

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentic_rag.documents.encoding import NotText, decode

SIMPLIFIED = """
蓝桥泵站|会议纪要|合同|价格|你好|中国|重庆|我们|产品名称|第一条|北京市朝阳区|数据安全法
用户手册|报销流程|差旅费
付款方式：月结。|张三|王小明|李雷|陶喆|朱镕基|鄂尔多斯|咖啡|蝴蝶|饕餮|葡萄|尴尬|垃圾分类
人工智能|水泵检修记录|蓝桥
泵站|测试|文件|北京|上海|深圳|苏州|项目|说明|备注|联通|移动|电信|请假|工资|单价，数量|密码
地址|姓名|电话|邮箱
日期|编号|部门|状态|完成|蓝桥泵站的水泵于2024年3月检修。|序号,名称,数量|# 安装说明|费用 12 元
A栋3层|使用Python编程
"""
TRADITIONAL = """
藍橋泵站|會議紀要|產品名稱|第一條|臺北市信義區|資料安全法|使用手冊|報銷流程|差旅費
付款方式：月結。|王小明|臺灣|台北
垃圾分類|人工智慧|水泵檢修記錄|單價，數量|圖書館|繁體中文|國語|歷史|香港|電腦|學校|銀行|醫院
體育|選舉|總統|憲法
本公司員工出差應事先填寫申請單，經主管核准後始得支領旅費。|水泵檢修後須進行壓力測試。
費用 12 元|使用 Python 程式
"""
WESTERN = """
Café crème à la carte|naïve|Müller|Straße|¡Ahora!|¿Cómo está?|São Paulo|coração|Größe|Ærø
Ångström|señor|déjà vu
“quotes” – dash €5|façade|Élan|crème|für|über|Ølen|5 €|20 °C|© 2024 Müller GmbH|£20|«é»|l’été
José|Noël|Zürich|mañana
niño|«Où êtes-vous ?»|ÜBER UNS|ÉCOLE|Ação|Français|garçon|Renée|piñata|El Niño
Mitarbeiter müssen Anträge stellen.
"""
LONG_SIMPLIFIED = (
    "为了规范数据处理活动，保障数据安全，促进数据开发利用，保护个人、组织的合法权益，制定本法。"
    "水泵检修后应当进行压力试验，记录转速、温度和振动数值，并由值班工程师签字确认。\n"
)
LONG_TRADITIONAL = (
    "臺灣位於亞洲東部，四面環海，氣候溫暖潮濕，山地占全島面積的三分之二。"
    "圖書館每週一休館，借書期限為三十天，得續借一次。這個故事說的是一位老人與他的貓。\n"
)
LONG_WESTERN = "Le café est fermé ; où êtes-vous ? Die Größe der Straße wächst über Nacht. " * 3


def _samples(table: str) -> list[str]:
    return [sample for line in table.split("\n") for sample in line.split("|") if sample]


@pytest.mark.parametrize("line_end", ["", "\r\n"])
@pytest.mark.parametrize(
    ("encoding", "samples"),
    [
        ("gb18030", [*_samples(SIMPLIFIED), LONG_SIMPLIFIED, LONG_SIMPLIFIED * 500]),
        ("big5", [*_samples(TRADITIONAL), LONG_TRADITIONAL, LONG_TRADITIONAL * 500]),
        ("gb18030", [LONG_TRADITIONAL, "圖書館每週一休館", "繁體中文使用手冊"]),
        ("cp1252", [*_samples(WESTERN), LONG_WESTERN, LONG_WESTERN * 500]),
        ("utf-8", _samples(SIMPLIFIED + TRADITIONAL + WESTERN)),
        ("utf-8-sig", _samples(SIMPLIFIED + TRADITIONAL + WESTERN)),
        ("utf-16", _samples(SIMPLIFIED + TRADITIONAL + WESTERN)),
        ("utf-32", _samples(SIMPLIFIED + TRADITIONAL + WESTERN)),
    ],
)
def test_short_and_long_texts_are_read_in_their_encoding(
    encoding: str, samples: list[str], line_end: str
) -> None:
    wrong = {}
    for sample in samples:
        text = sample + line_end
        decoded = decode(text.encode(encoding))
        if decoded.text != text.replace("\r\n", "\n"):
            wrong[sample] = decoded.text
    assert wrong == {}


def test_every_four_characters_of_a_chinese_text_tell_gbk_from_big5() -> None:
    for text, encoding in ((LONG_SIMPLIFIED, "gbk"), (LONG_TRADITIONAL, "big5")):
        for start in range(len(text) - 4):
            phrase = text[start : start + 4].strip()
            if sum("一" <= character <= "鿿" for character in phrase) >= 3:
                assert decode(phrase.encode(encoding)).text == phrase


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "text", ["price: 12\n", "数据安全法", "第一条\n为了规范数据处理活动\n", "Größe 5\n"]
)
def test_utf16_without_a_mark_is_recognised(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)).text == text


def test_four_byte_characters_of_gb18030_survive() -> None:
    text = "泵站㐂𠮷用字\r\n"
    assert decode(text.encode("gb18030")).text == "泵站㐂𠮷用字\n"


def test_a_utf8_file_is_never_read_as_gbk() -> None:
    for text in (
        "涓枃",
        "ÄÖÜ",
        "é",
        "Привет",
        "שלום",
        "مرحبا",
        "Ελλάδα",
        "naïve",
        "«é»",
        "Öğün",
        "Українська",
        "日本語のテキスト",
    ):
        decoded = decode(text.encode())
        assert (decoded.text, decoded.encoding) == (text, "utf-8")


@pytest.mark.parametrize("word", ["状态", "系统", "平台", "营业", "泄露", "系统,平台\r\n"])
def test_a_gbk_word_that_happens_to_be_odd_utf8_is_read_as_gbk(word: str) -> None:
    assert decode(word.encode("gbk")).text == word.replace("\r\n", "\n")


def test_a_replacement_mark_that_the_source_has_is_kept() -> None:
    assert decode("a�b".encode()).text == "a�b"


@pytest.mark.parametrize(
    ("declared", "text"),
    [("gb2312", "镕㐂"), ("shift_jis", "日本語のテキスト"), ("windows-1251", "Привет, мир")],
)
def test_a_declared_encoding_is_obeyed(declared: str, text: str) -> None:
    written = "gb18030" if declared == "gb2312" else declared
    assert decode(text.encode(written), declared).text == text


@pytest.mark.parametrize("declared", ["utf-8", "rot13", "base64", "idna", "no such thing", ""])
def test_a_wrong_or_senseless_declaration_does_no_harm(declared: str) -> None:
    assert decode("蓝桥泵站".encode("gbk"), declared).text == "蓝桥泵站"


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02\x03" * 50,
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00",
        bytes(range(256)),
        b"text\x00with\x00NULs",
        b"\x01\x02\x03",
        "正常的文字".encode() + b"\xff\xfe\xff",
        b"\x80\x81\xff\xfe\xfa",
        "日本語のテキストです".encode("shift_jis"),
        "Привет, мир".encode("cp1251"),
        "Привет, мир! Это короткий текст.".encode("koi8-r"),
        codecs.BOM_UTF16_LE + b"\x01\x00\x02\x00",
    ],
)
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(NotText):
        decode(data)


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "big5"])
def test_a_few_damaged_bytes_in_a_long_file_are_left_out_and_counted(encoding: str) -> None:
    good = (LONG_TRADITIONAL * 60).encode(encoding)
    decoded = decode(good + b"\xff\n" + good)
    assert decoded.omitted == 1
    assert "�" not in decoded.text
    assert decoded.text == LONG_TRADITIONAL * 60 + "\n" + LONG_TRADITIONAL * 60


def test_newlines_are_one_kind_and_control_characters_are_gone() -> None:
    decoded = decode("a\r\nb\rc\u2028d\x1b[31mred\x1b[0m\ufeff e\x07".encode() + b" " * 40)
    assert decoded.text.rstrip() == "a\nb\nc\ndred e"


HAN = st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=1)


@given(st.lists(st.sampled_from(_samples(SIMPLIFIED)), min_size=4).map("，".join))
@example("价格，价格，价格，合同")  # holds bytes that are UTF-8 of another plane
def test_simplified_texts_come_back_from_gb18030(text: str) -> None:
    assert decode(text.encode("gb18030")).text == text


@given(st.lists(st.sampled_from(_samples(TRADITIONAL)), min_size=3).map("，".join))
def test_traditional_texts_come_back_from_big5(text: str) -> None:
    assert decode(text.encode("big5")).text == text


@given(HAN)
def test_any_chinese_text_comes_back_from_utf8_and_utf16(text: str) -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert decode(text.encode(encoding)).text == text


@given(st.binary())
def test_any_bytes_give_text_without_replacement_marks_or_are_refused(data: bytes) -> None:
    try:
        decoded = decode(data)
    except NotText:
        return
    decoded.text.encode("utf-8")
    assert not decoded.text.startswith("\ufeff")
    real = (b"\xef\xbf\xbd", b"\x84\x31\xa4\x37", b"\xff\xfd", b"\xfd\xff")
    assert "�" not in decoded.text or any(mark in data for mark in real)
