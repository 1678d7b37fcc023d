console.error('There is nothing to do.')
process.exit(4)
