/** Ends before anybody can ask it anything. */
console.error('There is nothing to do.')
process.exit(4)
