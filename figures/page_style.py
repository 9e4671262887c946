"""The style sheet of the report: readable on screen and on paper, no outside fonts."""

from __future__ import annotations

CSS = """
:root{--ink:#1a1a1a;--soft:#5f6368;--line:#dadce0;--good:#00664a;--bad:#a83200;--warn:#7a5200;
--link:#0b5394}
*{box-sizing:border-box}
html{scroll-padding-top:3.2rem}
body{margin:0;color:var(--ink);background:#fff;
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main,header.top{max-width:64rem;margin:0 auto;padding:0 1.25rem}
header.top{padding-top:1.6rem}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.3rem;margin:2.6rem 0 .5rem;padding-top:.8rem;border-top:2px solid var(--ink)}
h3{font-size:1.02rem;margin:1.6rem 0 .4rem}
p{margin:.5rem 0;max-width:52rem}
a{color:var(--link)}
nav{position:sticky;top:0;z-index:2;background:#fff;border-bottom:1px solid var(--line);margin-top:1rem}
nav div{max-width:64rem;margin:0 auto;padding:.5rem 1.25rem;display:flex;flex-wrap:wrap;gap:.25rem 1.2rem;
font-size:.92rem}
nav a{text-decoration:none}
code{font-family:ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace;font-size:.88em;
overflow-wrap:anywhere}
.meta{color:var(--soft);font-size:.92rem}
.banner{border-left:.5rem solid;border-radius:.25rem;padding:.8rem 1.1rem;margin:1.1rem 0;font-size:1.02rem}
.banner b{font-size:1.15rem}
.banner p{margin:.2rem 0}
.banner.good{border-color:#009e73;background:#e9f6f1}
.banner.bad{border-color:#d55e00;background:#fdeee6}
.banner.warn{border-color:#e69f00;background:#fdf5e3}
.good{color:var(--good);font-weight:600}.bad{color:var(--bad);font-weight:700}
.warn{color:var(--warn);font-weight:600}.quiet{color:var(--soft)}
.banner.good,.banner.bad,.banner.warn{color:var(--ink);font-weight:400}
.absent{border:1px dashed var(--line);border-radius:.25rem;padding:.7rem 1rem;color:var(--soft)}
.theorem{border:1px solid var(--line);border-radius:.35rem;padding:.7rem 1.2rem 1rem;background:#fafbfc}
.theorem .statement{overflow-x:auto;padding:.5rem 0;font-size:1.12rem;line-height:2.9}
.theorem .term{display:inline-block;line-height:1;border-bottom:.2rem solid;padding:0 .15rem .35rem}
ul.terms{list-style:none;margin:.4rem 0 0;padding:0;display:flex;flex-wrap:wrap;gap:.55rem 1.6rem;
font-size:.95rem;align-items:center}
ul.terms li{display:flex;align-items:center;gap:.45rem}
.swatch{display:inline-block;width:.85rem;height:.85rem;border-radius:.15rem;flex:none}
svg.math{overflow:visible}svg.math path{fill:currentColor}
figure{margin:1.3rem 0 1.8rem}
figure img{display:block;max-width:100%;height:auto;border:1px solid var(--line);border-radius:.25rem;
background:#fff}
figcaption{font-size:.9rem;color:#3c4043;margin-top:.5rem;max-width:56rem}
figure.table figcaption{margin-top:.4rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;line-height:1.4;border-top:2px solid var(--ink);
border-bottom:2px solid var(--ink);font-variant-numeric:tabular-nums}
thead th{border-bottom:1px solid var(--ink);text-align:left;vertical-align:bottom;font-weight:600}
th,td{padding:.28rem .7rem .28rem 0;vertical-align:top}
th.r,td.r{text-align:right;white-space:nowrap}
td.l{max-width:26rem;overflow-wrap:break-word}td.p{min-width:9rem;max-width:24rem;overflow-wrap:anywhere}
td.l:has(svg.math){max-width:none;white-space:nowrap}
tbody tr:nth-child(even){background:#f6f7f8}
tr.badrow,tbody tr.badrow:nth-child(even){background:#fdeee6}
.ci{color:#3c4043;white-space:nowrap}
.failures{border:1px solid #d55e00;border-radius:.35rem;padding:.4rem 1.1rem .8rem;margin:1rem 0;
background:#fffaf7}
.failures h3{color:var(--bad);margin-top:.6rem}
details{margin:.8rem 0}summary{cursor:pointer;color:var(--link);font-weight:600}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1.2rem;font-size:.92rem}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
.files{columns:3 16rem;font-size:.86rem;padding-left:1.1rem}
@media print{nav{display:none}body{font-size:11pt}h2{break-after:avoid}figure{break-inside:avoid}
details>*{display:block}}
"""
