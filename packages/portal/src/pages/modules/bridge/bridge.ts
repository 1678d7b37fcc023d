import { call, type CallOptions } from './call.ts'
import { type PortalMessage, readMessage, type FrameContext } from './messages.ts'
import { isOwnPath } from './own-path.ts'

/** Calls of a page that are under way at once. More are refused: a page that asks in a loop must not starve the portal. */
const atOnce = 10

interface BridgeOptions extends Omit<CallOptions, 'signal'> {
  moduleId: string
  surroundings: () => FrameContext
  /** Sends a message to the page. */
  send: (message: PortalMessage) => void
  /** Shows another page of the module; its path was looked at. */
  open: (path: string) => void
}

/** The portal's end of the bridge to a module's page. */
export interface Bridge {
  /** Takes a message that is known to be from the page. */
  receive: (data: unknown) => void
  /** Tells the page, if it has asked once, what has changed around it. */
  tellSurroundings: () => void
  /** Gives up what is under way. */
  end: () => void
}

/** Begins to serve a module's page. What it says that is no message is passed over. */
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
