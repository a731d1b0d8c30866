/** The static content of the pages; their scripts add data from the API. */

const card = (to: string, title: string, text: string) =>
  `<li><a class="card" href="${to}"><strong>${title}</strong><span>${text}</span></a></li>`;

export const homeMain = `
<h1>The service on which developers of new homes run their sales</h1>
<p class="lead">One GraphQL endpoint, <code>POST /graphql</code>, with typed errors, events as they are committed, and webhooks.</p>
<section id="people" hidden aria-labelledby="people-title"><h2 id="people-title">Look around as somebody of the demo</h2><ul class="cards"></ul></section>
<section aria-labelledby="begin"><h2 id="begin">Begin</h2><ul class="cards">
${card("/guides/first-conversation", "First conversation", "From sign-up to the first lead with nothing but curl.")}
${card("/explorer", "Explorer", "Operations with examples, what they cost, and the events that they cause.")}
${card("/reference", "Reference", "All operations and types, with permissions, states and real answers.")}
${card("/sales-floor", "Sales floor", "Open it in two windows: a unit that is held in one turns in the other.")}
${card("/guides/accounts", "Sign in, tokens, second factors", "How programs and people prove who they are.")}
${card("/guides/client", "Client", "Typed operations for browsers, Node and edge runtimes.")}
${card("/guides/webhooks", "Webhooks", "What happened, sent to an address of yours.")}
${card("/jobs", "Jobs", "For operators, and for owners of an organization.")}
</ul></section>
<section aria-labelledby="ask"><h2 id="ask">Ask now</h2>
<p>Anybody may ask for the public projects.</p>
<pre tabindex="0"><code>{ publicProjects { title status city } }</code></pre>
<button type="button" id="ask-now">Ask</button><pre id="answer" tabindex="0" aria-label="Answer" hidden></pre></section>`;

export const referenceMain = `
<h1 class="visually-hidden">Reference</h1>
<div class="with-list"><nav aria-label="Operations and types">
<label>Search <input id="search" type="search" autocomplete="off" placeholder="lead, price, sign …"></label>
<p id="found" role="status" class="quiet"></p><div id="list"></div></nav>
<article id="entry"><p>The schema is being read …</p></article></div>`;

const sqlPart = (readers: string) => `
<details id="sql-part" data-readers="${readers}" hidden><summary>SQL</summary>
<label><input type="checkbox" id="plans"> With plans, from the next run on</label>
<p id="sql-state" class="quiet" role="status">Run an operation to see its statements.</p><ol id="statements"></ol></details>`;

/** @param statements who may read the SQL statements of their operations; the script shows the panel to them */
export const explorerMain = (statements?: "everyone" | "operators") => `
<h1 class="visually-hidden">Explorer</h1>
<div class="explorer">
<nav aria-label="Examples" id="examples"><h2>Examples</h2></nav>
<section class="ask" aria-label="Operation">
<div class="bar"><button type="button" id="run">Run</button>
<label>Operation <select id="operation"></select></label><span class="quiet">Ctrl Enter runs it, Ctrl Space completes.</span></div>
<div id="document" class="editor"></div>
<h2>Variables</h2><div id="variables" class="editor small"></div>
<details id="headers-part"><summary>Headers</summary><div id="headers" class="editor small"></div></details>
<details id="code-part"><summary>As code</summary><div id="code"></div></details></section>
<section class="answer" aria-labelledby="answer-title"><h2 id="answer-title">Answer</h2>
<p id="cost" role="status" class="quiet">Nothing was asked yet.</p>${statements ? sqlPart(statements) : ""}<div id="result" class="editor"></div></section>
<section class="events" aria-labelledby="events-title"><h2 id="events-title">Events</h2>
<p id="feed-state" class="quiet">Sign in to see what happens in your organization.</p>
<ol id="events" tabindex="0" aria-label="Events of the organization, the newest first"></ol></section>
</div>`;

export const salesFloorMain = `
<h1>Sales floor</h1>
<p>The units of a project, live. Open this page in a second window, as somebody else: what is done in one shows in the other.</p>
<div class="bar"><label>Project <select id="project"></select></label>
<label>Lead <select id="lead"></select></label>
<span id="live" class="quiet" role="status">Sign in to see units.</span></div>
<ul id="counts" class="counts" aria-label="Units by status"></ul>
<ul id="units" class="units" aria-label="Units"></ul>
<section aria-labelledby="happened"><h2 id="happened">What happened</h2><ol id="events" tabindex="0" aria-label="Events, the newest first"></ol></section>`;
