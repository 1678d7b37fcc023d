/** Reports a problem that prevents the start and that the user can fix. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

interface Address {
  host: string
  port: number
  setting?: string
}

const reasonsBySetting = (setting: string): Readonly<Record<string, string>> => ({
  EADDRINUSE: `is in use. Stop the program that uses it, or set ${setting} to another port (0 picks a free one).`,
  EACCES: `requires more privileges. Set ${setting} to a port of at least 1024.`,
  EADDRNOTAVAIL: 'is not an address of this machine. Set PLAT_HOST to one that is.',
  ENOTFOUND: 'cannot be resolved. Set PLAT_HOST to an address of this machine.',
})

export const explainListenError =
  ({ host, port, setting = 'PLAT_PORT' }: Address) =>
  (error: NodeJS.ErrnoException): never => {
    const reason = reasonsBySetting(setting)[error.code ?? '']
    throw reason === undefined ? error : new StartError(`${host}:${port} ${reason}`, { cause: error })
  }
