from acf.cli import main

main()
