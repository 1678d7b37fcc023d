import { execFileSync } from 'node:child_process'
import { closeSync, constants, fchownSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Stream } from '../backlog.ts'
import type { Pipes } from './child.ts'
import type { ScriptUser } from './user.ts'

/**
 * Named pipes for the output of a script. The pipes of Node.js are sockets, and a script cannot open `/dev/stdout` or
 * `/dev/stderr` if they are sockets.
 */
export class FifoPair {
  readonly pipes: Pipes
  readonly writers: Record<Stream, number>

  constructor(folder: string, { isOther, uid, gid }: ScriptUser) {
    const [stdout, stderr] = [takeFifo(folder), takeFifo(folder)]
    this.writers = { stdout: stdout.writer, stderr: stderr.writer }
    this.pipes = { stdout: readerOf(stdout), stderr: readerOf(stderr) }
    if (isOther) for (const writer of Object.values(this.writers)) fchownSync(writer, uid, gid)
  }

  /** Closes the relay's write ends, so that the readers receive end-of-file when the script ends. */
  releaseWriters(): void {
    closeSync(this.writers.stdout)
    closeSync(this.writers.stderr)
  }
}

type Fifo = Record<'reader' | 'writer', number>

/** Named pipes are created in advance, because each start of `mkfifo` takes a few milliseconds. */
const fifos: Fifo[] = []
const fifoCount = 16

function takeFifo(parent: string): Fifo {
  if (fifos.length === 0) openFifos(parent)
  return fifos.pop()!
}

/** The files are removed at once: `/dev/stdout` opens the pipe of a process without its path. */
function openFifos(parent: string): void {
  const folder = mkdtempSync(join(parent, 'fifos-'))
  try {
    const paths = Array.from({ length: fifoCount }, (_, index) => join(folder, String(index)))
    execFileSync('mkfifo', ['-m', '600', ...paths], { stdio: 'ignore' })
    for (const path of paths) {
      // Without O_NONBLOCK, opening would block until there is a writer.
      const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
      fifos.push({ reader, writer: openSync(path, 'w') })
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const readerOf = ({ reader }: Fifo): Socket => new Socket({ fd: reader, readable: true, writable: false })
