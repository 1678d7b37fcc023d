/** The platform cannot start, for a reason that the message tells and its user can mend. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure'
}

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is in use. Stop what listens there, or set PLAT_PORT to another port (0 picks a free one).',
  EACCES: 'needs more rights. Set PLAT_PORT to a port from 1024 on.',
  EADDRNOTAVAIL: 'is not an address of this machine. Set PLAT_HOST to one that is.',
  ENOTFOUND: 'cannot be resolved. Set PLAT_HOST to an address of this machine.',
}

/** Puts the reasons why an address cannot be bound into words. */
export const explainListenError =
  ({ host, port }: { host: string; port: number }) =>
  (error: NodeJS.ErrnoException): never => {
    const reason = reasons[error.code ?? '']
    throw reason === undefined ? error : new StartFailure(`${host}:${port} ${reason}`, { cause: error })
  }
