/** The platform cannot start for a reason that the user can fix. */
export class StartError extends Error {
  override readonly name = 'StartError'
}

/** An address to listen on, and the setting of its port. */
interface Address {
  host: string
  port: number
  setting?: string
}

const reasonsBySetting = (setting: string): Readonly<Record<string, string>> => ({
  EADDRINUSE: `is in use. Stop what listens there, or set ${setting} to another port (0 picks a free one).`,
  EACCES: `needs more rights. Set ${setting} to a port from 1024 on.`,
  EADDRNOTAVAIL: 'is not an address of this machine. Set PLAT_HOST to one that is.',
  ENOTFOUND: 'cannot be resolved. Set PLAT_HOST to an address of this machine.',
})

/** Explains why an address cannot be bound. */
export const explainListenError =
  ({ host, port, setting = 'PLAT_PORT' }: Address) =>
  (error: NodeJS.ErrnoException): never => {
    const reason = reasonsBySetting(setting)[error.code ?? '']
    throw reason === undefined ? error : new StartError(`${host}:${port} ${reason}`, { cause: error })
  }
