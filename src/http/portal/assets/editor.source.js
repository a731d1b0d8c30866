/**
 * Bundled into editor.js by `npm run portal`: the editors of the explorer, with the parts of the GraphQL package that
 * they need.
 */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap } from "@codemirror/lint";
import { Compartment, EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { graphql, updateSchema } from "cm6-graphql";
import { buildClientSchema, parse } from "graphql";

/** Colours are variables of the page's stylesheet, which has them for light and dark. */
const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.definitionKeyword, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--code-comment)" },
  { tag: [tags.propertyName, tags.attributeName], color: "var(--code-name)" },
  { tag: [tags.typeName, tags.variableName], color: "var(--code-type)" },
]);
const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--field)", fontSize: "14px", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--selected)",
  },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--on-accent)",
  },
});

/**
 * Creates an editor. Tab leaves it like any field, so that keyboard users are not trapped.
 * @param {{ parent: Element, label: string, language: "graphql" | "json", run?: () => void, readOnly?: boolean }}
 * options
 */
export function createEditor({ parent, label, language, run, readOnly = false }) {
  const changing = new Compartment();
  // In a shadow tree, the editor adopts style sheets. In the document, it would insert style elements, which the
  // content security policy forbids.
  const root = parent.attachShadow({ mode: "open" });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      extensions: [
        keymap.of([
          {
            key: "Mod-Enter",
            run: () => {
              run?.();
              return Boolean(run);
            },
          },
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          ...completionKeymap,
          ...lintKeymap,
        ]),
        ...(readOnly
          ? [EditorState.readOnly.of(true)]
          : [
              lineNumbers(),
              history(),
              closeBrackets(),
              autocompletion(),
              indentOnInput(),
              highlightActiveLine(),
            ]),
        drawSelection(),
        bracketMatching(),
        EditorView.lineWrapping,
        syntaxHighlighting(colours),
        changing.of(language === "json" ? json() : graphql()),
        EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
        look,
      ],
    }),
  });
  return {
    get text() {
      return view.state.doc.toString();
    },
    set text(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    focus: () => view.focus(),
    /** Enables completion and validation. @param {object} introspection */
    setSchema: (introspection) => updateSchema(view, buildClientSchema(introspection)),
  };
}

/** The operations of a document, in order. @param {string} text */
export function operationsOf(text) {
  const document = parse(text);
  return document.definitions.flatMap((definition) =>
    definition.kind === "OperationDefinition"
      ? [{ name: definition.name?.value, kind: definition.operation }]
      : [],
  );
}
