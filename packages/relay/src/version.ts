/** The version that the relay reports to the server. It must equal the version in `package.json`. */
export const relayVersion = '0.1.0'
