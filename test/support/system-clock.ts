/**
 * Changes the system clock of a program, also in its threads: `node --import 'system-clock.ts?file=PATH'`. The file
 * contains the difference in milliseconds. Monotonic time stays the same, as on a machine whose clock is set.
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { ServerResponse } from 'node:http'

const file = new URL(import.meta.url).searchParams.get('file') ?? ''
const RealDate = Date
const rereadMs = 10

let [differenceMs, readAtMs] = [0, -Infinity]

function now(): number {
  if (performance.now() - readAtMs > rereadMs) {
    readAtMs = performance.now()
    differenceMs = Number(readFileSync(file, 'utf8'))
  }
  return RealDate.now() + differenceMs
}

/** Replaces the file, so that no program reads a partly written one. */
export function setSystemClock(path: string, timeMs: number): void {
  writeFileSync(`${path}.new`, String(timeMs))
  renameSync(`${path}.new`, path)
}

function replaceDate(): void {
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new Date().toString(),
    get: (target, name, receiver) => (name === 'now' ? now : Reflect.get(target, name, receiver)),
  })
}

/** Node keeps the original `Date` for the header. */
function replaceDateHeader(): void {
  const original: ServerResponse['writeHead'] = Reflect.get(ServerResponse.prototype, 'writeHead')
  ServerResponse.prototype.writeHead = new Proxy(original, {
    apply: (target, response: ServerResponse, args) => {
      if (!response.hasHeader('date')) response.setHeader('date', new Date().toUTCString())
      return Reflect.apply(target, response, args)
    },
  })
}

if (file !== '') {
  replaceDate()
  replaceDateHeader()
}
