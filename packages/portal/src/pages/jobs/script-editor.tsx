import { useEffect, useRef } from 'react'
import { Loading } from '../../ui/state.tsx'
import { useScriptView } from './use-script-view.ts'
import styles from './script-editor.module.css'

interface ScriptEditorProps {
  /** The initial text; later changes are ignored. */
  initial: string
  onChange: (script: string) => void
  /** The id of the description. */
  labelledBy: string
}

/** The script editor, loaded on first use. */
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
