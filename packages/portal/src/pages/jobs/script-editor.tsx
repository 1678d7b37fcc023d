import { type RefObject, useEffect, useRef, useState } from 'react'
import { Loading } from '../../ui/state.tsx'
import styles from './script-editor.module.css'

interface ScriptEditorProps {
  /** The initial text. Later changes of this property are ignored. */
  initial: string
  onChange: (script: string) => void
  labelledBy: string
}

/** The script editor, which is loaded on first use. */
export function ScriptEditor({ initial, onChange, labelledBy }: ScriptEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const latestOnChange = useRef(onChange)
  useEffect(() => {
    latestOnChange.current = onChange
  })
  const isReady = useScriptView(host, initial, (script) => latestOnChange.current(script), labelledBy)
  useEffect(() => {
    // On touch screens the keyboard would cover the page.
    const text = host.current?.shadowRoot?.querySelector<HTMLElement>('[contenteditable]')
    if (isReady && isUnfocused() && !matchMedia('(pointer: coarse)').matches) text?.focus()
  }, [isReady])
  return (
    <>
      {!isReady && <Loading what="the editor" />}
      <div ref={host} className={styles['host']} hidden={!isReady} />
    </>
  )
}

// Whether the user has not moved the focus. When a page opens, the shell moves the focus to `main`.
const isUnfocused = (): boolean => document.activeElement === document.body || document.activeElement?.id === 'main'

// The content security policy blocks style elements, so the editor is in a shadow root, where it uses constructable
// style sheets.
function useScriptView(
  host: RefObject<HTMLDivElement | null>,
  initial: string,
  onChange: (script: string) => void,
  labelledBy: string,
): boolean {
  const [isReady, setIsReady] = useState(false)
  const [failure, setFailure] = useState<unknown>()
  useEffect(() => {
    const element = host.current
    if (element === null) return undefined
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open', delegatesFocus: true })
    const label = document.getElementById(labelledBy)?.textContent ?? 'Script'
    let dispose = (): void => undefined
    let isDisposed = false
    const load = async () => {
      const { createScriptView } = await import('./script-view.ts')
      if (isDisposed) return
      dispose = createScriptView({ root, initial, label, onChange })
      setIsReady(true)
    }
    load().catch(setFailure)
    return () => {
      isDisposed = true
      dispose()
    }
    // The editor is created once and owns its text.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  // The error page of the router has a retry button.
  if (failure !== undefined) throw failure
  return isReady
}
