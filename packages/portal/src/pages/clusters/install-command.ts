const proxyVariables = 'HTTPS_PROXY,HTTP_PROXY,NO_PROXY,NODE_EXTRA_CA_CERTS'

/**
 * Returns the command that installs the relay as a service, with the proxy settings of the caller. `variable` is the
 * name of the environment variable with the secret.
 */
export const installCommand = (variable: string, server: string): string =>
  `sudo --preserve-env=${variable},${proxyVariables} node platform-relay.mjs install --server ${server}`
