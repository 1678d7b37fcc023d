import { useRouter } from '@tanstack/react-router'
import { type RefObject, useEffect, useRef } from 'react'
import { fetchInSession } from '../../../api/session.ts'
import { useIsDark } from '../../../app/theme.ts'
import { type Bridge, openBridge } from './bridge.ts'

interface BridgeOf {
  moduleId: string
  /** Undefined where the user may not know it: then the page calls what is below its own address. */
  apiBasePath: string | undefined
}

/** Serves the page that a frame shows, and no other: who speaks is known by the window, which nobody can forge. */
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
      // A sandboxed page has no origin to name. The portal's policy lets nothing but this platform's pages into a frame.
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
