/** Runs without listening. */
setInterval(() => {}, 60_000)
