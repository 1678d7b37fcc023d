/** Lives, and nobody can ask it anything. */
setInterval(() => {}, 60_000)
