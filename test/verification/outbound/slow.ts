import type { ServerResponse } from 'node:http'
import { parseAllowlist } from '@platform/core/lib/settings/allowlist'
import { outboundFetch } from '@platform/core/outbound/outbound'
import { startServer } from '../../support/http-server.ts'

/** Servers that take their time, or more than there is room for. */

const drip = (outgoing: ServerResponse, everyMs: number, text: string): void => {
  const timer = setInterval(() => outgoing.write(text), everyMs)
  outgoing.on('close', () => clearInterval(timer))
}

const manners: Readonly<Record<string, (outgoing: ServerResponse) => unknown>> = {
  'says nothing': () => undefined,
  'says a letter every 20 ms': (outgoing) => drip(outgoing, 20, 'x'),
  'says 64 KiB every millisecond': (outgoing) => drip(outgoing, 1, 'x'.repeat(65_536)),
  'has no end of headers': (outgoing) => outgoing.writeHead(200, { 'x-large': 'x'.repeat(1_000_000) }).end(),
  'promises ten gigabytes': (outgoing) => outgoing.writeHead(200, { 'content-length': 10_000_000_000 }).write('x'),
  'keeps saying that it begins': (outgoing) => {
    const timer = setInterval(() => outgoing.writeProcessing(), 10)
    outgoing.on('close', () => clearInterval(timer))
  },
  'hangs up': (outgoing) => outgoing.destroy(),
}

const timeoutMs = 600
const maxBytes = 100_000
/** What a busy machine may take on top. */
const patienceMs = 5000

/** Calls servers with bad manners; answers which of them took too long or too much. */
export async function callSlow(): Promise<{ calls: number; tooMuch: string[] }> {
  const tooMuch: string[] = []
  for (const [name, manner] of Object.entries(manners)) {
    await using server = await startServer((_, outgoing) => void manner(outgoing))
    const startedAtMs = performance.now()
    const called = outboundFetch(
      server.url,
      { method: 'GET', timeoutMs, maxBytes },
      { allow: parseAllowlist(server.host) },
    )
    const answer = await called.catch(() => undefined)
    const tookMs = performance.now() - startedAtMs
    if (tookMs > timeoutMs + patienceMs) tooMuch.push(`a server that ${name}: ${Math.round(tookMs)} ms`)
    if ((answer?.body.length ?? 0) > maxBytes) tooMuch.push(`a server that ${name}: ${answer?.body.length} bytes`)
  }
  return { calls: Object.keys(manners).length, tooMuch }
}
