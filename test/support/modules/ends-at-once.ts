/** Exits before it listens. */
console.error('There is nothing to do.')
process.exit(4)
