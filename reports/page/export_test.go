package page

// What the tests outside the package look at. They are outside because they
// play real runs, and what plays runs imports this package.
var (
	PageCSS = styleCSS
	LogicJS = logicJS
	ViewJS  = viewJS
	Script  = script
	Policy  = policy
)
