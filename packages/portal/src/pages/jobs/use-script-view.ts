import { type RefObject, useEffect, useState } from 'react'

/**
 * Mounts the editor in a shadow root, where it uses constructable style sheets: the content security policy blocks
 * style elements.
 */
export function useScriptView(
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
    let leave = (): void => undefined
    let isGone = false
    const enter = async () => {
      const { scriptView } = await import('./script-view.ts')
      if (isGone) return
      leave = scriptView({ root, initial, label, onChange })
      setIsReady(true)
    }
    enter().catch(setFailure)
    return () => {
      isGone = true
      leave()
    }
    // The editor is created once and owns its text.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  // The error page offers a retry.
  if (failure !== undefined) throw failure
  return isReady
}
