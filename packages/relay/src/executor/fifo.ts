import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Stream } from '../backlog.ts'
import type { Pipes } from './child.ts'

/**
 * Named pipes in a folder, for the output of a script. The pipes of Node.js are sockets, and a script cannot open
 * `/dev/stdout` or `/dev/stderr` if they are sockets.
 */
export class FifoPair {
  readonly pipes: Pipes
  readonly writers: Record<Stream, number>
  readonly paths: string[]

  constructor(folder: string) {
    const paths = { stdout: join(folder, 'stdout'), stderr: join(folder, 'stderr') }
    execFileSync('mkfifo', ['-m', '600', paths.stdout, paths.stderr], { stdio: 'ignore' })
    this.paths = Object.values(paths)
    this.pipes = { stdout: openReader(paths.stdout), stderr: openReader(paths.stderr) }
    this.writers = { stdout: openSync(paths.stdout, 'w'), stderr: openSync(paths.stderr, 'w') }
  }

  /** Closes the relay's write ends, so that the readers receive end-of-file when the script ends. */
  releaseWriters(): void {
    closeSync(this.writers.stdout)
    closeSync(this.writers.stderr)
  }
}

function openReader(path: string): Socket {
  // Without O_NONBLOCK, opening would block until there is a writer.
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd: file, readable: true, writable: false })
}
