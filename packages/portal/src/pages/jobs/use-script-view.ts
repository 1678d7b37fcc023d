import { type RefObject, useEffect, useState } from 'react'

/**
 * Puts the editor into an element. It lives in a shadow tree: there it hands its styles to the browser as objects, where in
 * the page it would write a style element, which the portal's policy forbids.
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
    // The editor keeps its own text from here on: it is made once.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [])
  // The page says so, and offers to try again: without its editor it is of no use.
  if (failure !== undefined) throw failure
  return isReady
}
