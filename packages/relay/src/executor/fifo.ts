import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Stream } from '../backlog.ts'
import type { Pipes } from './child.ts'

/**
 * Named pipes for the output of a script, in its folder. Node's own pipes are sockets, and a script that opens
 * `/dev/stdout` or `/dev/stderr` fails on those.
 */
export class FifoPair {
  readonly pipes: Pipes
  readonly writers: Record<Stream, number>

  constructor(folder: string) {
    const paths = { stdout: join(folder, 'stdout'), stderr: join(folder, 'stderr') }
    execFileSync('mkfifo', ['-m', '600', paths.stdout, paths.stderr], { stdio: 'ignore' })
    this.pipes = { stdout: openReader(paths.stdout), stderr: openReader(paths.stderr) }
    this.writers = { stdout: openSync(paths.stdout, 'w'), stderr: openSync(paths.stderr, 'w') }
  }

  /** Leaves the script as the only writer, so reading ends with it. */
  releaseWriters(): void {
    closeSync(this.writers.stdout)
    closeSync(this.writers.stderr)
  }
}

function openReader(path: string): Socket {
  // Without O_NONBLOCK, opening would wait for a writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd: file, readable: true, writable: false })
}
