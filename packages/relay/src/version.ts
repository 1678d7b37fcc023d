/** The version of the relay, as reported to the server; the same as in `package.json`. */
export const relayVersion = '0.1.0'
