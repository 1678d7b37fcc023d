import { useEffect, useRef } from 'react'
import { Loading } from '../../ui/state.tsx'
import { useScriptView } from './use-script-view.ts'
import styles from './script-editor.module.css'

interface ScriptEditorProps {
  /** What it begins with; later changes of it are not followed. */
  initial: string
  onChange: (script: string) => void
  /** The id of the text that says what it is for. */
  labelledBy: string
}

/** The editor for a script. It is loaded when it is needed. */
export function ScriptEditor({ initial, onChange, labelledBy }: ScriptEditorProps) {
  const host = useRef<HTMLDivElement>(null)
  const latest = useRef(onChange)
  useEffect(() => {
    latest.current = onChange
  })
  const isReady = useScriptView(host, initial, (script) => latest.current(script), labelledBy)
  return (
    <>
      {!isReady && <Loading what="the editor" />}
      <div ref={host} className={styles['host']} hidden={!isReady} />
    </>
  )
}
