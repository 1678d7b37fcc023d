import { useRouter } from '@tanstack/react-router'
import { type RefObject, useEffect, useRef } from 'react'
import { fetchInSession } from '../../../api/session.ts'
import { useIsDark } from '../../../lib/theme.ts'
import { type Bridge, openBridge } from './bridge.ts'

interface BridgeOf {
  moduleId: string
  /** Undefined if the user may not read it: then only calls below the page's path work. */
  apiBasePath: string | undefined
}

/** Serves the page of a frame. Messages are authenticated by their source window, which cannot be forged. */
export function useBridge(frame: RefObject<HTMLIFrameElement | null>, { moduleId, apiBasePath }: BridgeOf): void {
  const router = useRouter()
  const theme = useIsDark() ? 'dark' : 'light'
  const shown = useRef<'light' | 'dark'>(theme)
  const bridge = useRef<Bridge>(undefined)

  useEffect(() => {
    shown.current = theme
    bridge.current?.tellSurroundings()
  }, [theme])

  useEffect(() => {
    const opened = openBridge({
      moduleId,
      origin: location.origin,
      bases: [`/modules/${moduleId}`, ...(apiBasePath === undefined ? [] : [apiBasePath])],
      fetch: fetchInSession,
      surroundings: () => ({ theme: shown.current, locale: navigator.language, timeZone: timeZone() }),
      // A sandboxed page has no origin to target. The content security policy limits frames to this platform.
      send: (message) => frame.current?.contentWindow?.postMessage(message, '*'),
      open: (path) => router.history.push(path),
    })
    bridge.current = opened
    const onMessage = ({ source, origin, data }: MessageEvent) => {
      if (source !== null && source === frame.current?.contentWindow && origin === 'null') opened.receive(data)
    }
    addEventListener('message', onMessage)
    return () => {
      removeEventListener('message', onMessage)
      opened.end()
    }
  }, [frame, router, moduleId, apiBasePath])
}

const timeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone
