const proxyVariables = 'HTTPS_PROXY,HTTP_PROXY,NO_PROXY,NODE_EXTRA_CA_CERTS'

/** Installs the relay as a service, with the proxy settings of the caller. The variable contains the secret. */
export const installCommand = (variable: string, server: string): string =>
  `sudo --preserve-env=${variable},${proxyVariables} node platform-relay.mjs install --server ${server}`
