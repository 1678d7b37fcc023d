import { call, type CallOptions } from './call.ts'
import { type PortalMessage, readMessage, type FrameContext } from './messages.ts'
import { isOwnPath } from './own-path.ts'

/** Concurrent calls of a page. A page that calls in a loop must not block the portal. */
const atOnce = 10

interface BridgeOptions extends Omit<CallOptions, 'signal'> {
  moduleId: string
  surroundings: () => FrameContext
  send: (message: PortalMessage) => void
  /** Opens another page of the module; the path is already validated. */
  open: (path: string) => void
}

/** The portal's side of the bridge to a module's page. */
export interface Bridge {
  /** Handles a message whose origin is verified. */
  receive: (data: unknown) => void
  /** Sends the context again, if the page requested it before. */
  tellSurroundings: () => void
  /** Aborts running calls. */
  end: () => void
}

/** Serves a module's page. Ignores invalid messages. */
export function openBridge({ moduleId, surroundings, send, open, ...options }: BridgeOptions): Bridge {
  const ending = new AbortController()
  let underWay = 0
  let hasAsked = false

  const tellSurroundings = () => {
    if (hasAsked) send({ platform: 'surroundings', ...surroundings() })
  }
  const answer = async (message: Parameters<typeof call>[0]) => {
    if (underWay >= atOnce) {
      return send({ platform: 'response', id: message.id, status: 0, headers: {}, body: '', error: 'too_many' })
    }
    underWay += 1
    const answered = await call(message, { ...options, signal: ending.signal })
    underWay -= 1
    if (!ending.signal.aborted) send(answered)
  }
  const receive = (data: unknown) => {
    const message = readMessage(data)
    if (message?.platform === 'request') void answer(message)
    if (message?.platform === 'open' && isOwnPath(message.path, [`/modules/${moduleId}`])) open(message.path)
    if (message?.platform === 'hello') {
      hasAsked = true
      tellSurroundings()
    }
  }
  return { receive, tellSurroundings, end: () => ending.abort() }
}
