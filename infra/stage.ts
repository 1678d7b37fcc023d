/** Which stage this is, and what follows from it. */
const { stage } = $app
/** What people rely on: it is protected from removal, and kept. */
export const isProduction = stage === 'production'

/** Functions, queues and secrets find each other by names, which all begin so: none of them has to be made before another. */
export const prefix = `${$app.name}-${stage}`

export const logRetention = isProduction ? '1 year' : '1 week'
