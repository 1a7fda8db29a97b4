// Runs a node of the service that exits when its parent process exits, even if the parent was killed.
process.on('disconnect', () => process.exit())
await import('./main.js')
export {}
