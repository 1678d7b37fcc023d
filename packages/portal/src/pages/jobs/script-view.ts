import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language'
import { python } from '@codemirror/legacy-modes/mode/python'
import { shell } from '@codemirror/legacy-modes/mode/shell'
import { Compartment, EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from '@codemirror/view'
import { tags } from '@lezer/highlight'

const colours = HighlightStyle.define([
  { tag: [tags.comment, tags.meta], color: 'var(--muted)' },
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword], color: 'var(--accent)', fontWeight: '600' },
  { tag: [tags.string, tags.special(tags.string)], color: 'var(--good)' },
  { tag: [tags.variableName, tags.definition(tags.variableName), tags.attributeName], color: 'var(--warn)' },
  { tag: [tags.number, tags.bool], color: 'var(--bad)' },
])

const theme = EditorView.theme({
  '&': { color: 'var(--ink)', backgroundColor: 'var(--surface)', fontSize: '0.875rem' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.6', minHeight: '14rem', maxHeight: '60dvh' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--muted)', borderRightColor: 'var(--line)' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--sunken)' },
  '.cm-selectionBackground, &.cm-focused .cm-selectionBackground': { backgroundColor: 'var(--accent-tint) !important' },
  '.cm-placeholder': { color: 'var(--muted)' },
})

// The first line names the interpreter; the default is `sh`.
const languageOf = (script: string) => StreamLanguage.define(/^#!.*python/.test(script) ? python : shell)

// When a selection is replaced, the browser would copy its style as an attribute, which the content security policy
// blocks. So the editor replaces the selection.
const replaceSelection = EditorView.domEventHandlers({
  beforeinput: ({ inputType, data }, view) => {
    const { state } = view
    if (inputType !== 'insertText' || data === null || view.composing || state.selection.main.empty) return false
    view.dispatch(state.replaceSelection(data), { userEvent: 'input.type', scrollIntoView: true })
    return true
  },
})

interface ScriptViewOptions {
  root: ShadowRoot
  initial: string
  label: string
  onChange: (script: string) => void
}

/** Creates an editor and returns a function that disposes of it. The Tab key leaves the editor, as in any field. */
export function createScriptView({ root, initial, label, onChange }: ScriptViewOptions): () => void {
  const language = new Compartment()
  const onUpdate = EditorView.updateListener.of(({ docChanged, state, startState, view }) => {
    if (!docChanged) return
    onChange(state.doc.toString())
    const [before, after] = [startState.doc.line(1).text, state.doc.line(1).text]
    if (before !== after) view.dispatch({ effects: language.reconfigure(languageOf(after)) })
  })
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: initial,
      extensions: [
        // This keeps CRLF line endings, so that the form can offer to convert them.
        EditorState.lineSeparator.of('\n'),
        lineNumbers(),
        history(),
        replaceSelection,
        drawSelection(),
        highlightActiveLine(),
        bracketMatching(),
        placeholder('#!/bin/sh'),
        language.of(languageOf(initial)),
        syntaxHighlighting(colours),
        theme,
        // The form handles this key.
        keymap.of([{ key: 'Mod-Enter', run: () => true }, ...defaultKeymap, ...historyKeymap]),
        EditorView.contentAttributes.of({
          'aria-label': label,
          spellcheck: 'false',
          autocapitalize: 'off',
        }),
        onUpdate,
      ],
    }),
  })
  return () => view.destroy()
}
